// End of a program that does many launches with one kernel; -DDO_LAUNCH are the cases of a switch over its functions.
#undef get_group_id
#undef get_local_id
#undef get_global_id
#undef barrier

// Where a buffer lies on the device.
kernel void address(global long *to, int i, global const void *buffer) { to[i] = (long)buffer; }

// `table` has a row for each launch: function, whether the next launch waits for the whole device, groups along x and y,
// all groups, items of a group along x and y, the place that does the first group, and the arguments.
// `state`: groups of the device that came to a meeting, those that finished, and whether one gave up.
kernel __attribute__((reqd_work_group_size(ALL_ITEMS, 1, 1)))
void persistent(global const long *table, global uint *state, int launches) {
  local uchar arena[ARENA] __attribute__((aligned(128)));  // the row lies in it, too, until a function has read it
  local long *row = (local long *)arena;
  const int id = get_local_id(0), place = get_group_id(0), places = get_num_groups(0);
  uint count = 0;
  if (id < ROW_NUMBERS) row[id] = table[id];
  everyone();
  for (int i = 0; i < launches; ++i) {
    const int meet = (int)row[1];
    switch ((int)row[0]) { DO_LAUNCH }
    everyone();
    if (i + 1 == launches) break;
    int good = 1;
    count += meet ? places : 0;
    if (id == 0) {
      if (meet) good = whole_device(state, count);
      row[ROW_NUMBERS] = good;
    }
    const int from = id - (ALL_ITEMS - ROW_NUMBERS);  // items of another warp than that one's
    if (from >= 0) row[from] = table[(i + 1) * ROW_NUMBERS + from];
    everyone();
    if (!row[ROW_NUMBERS]) return;
  }
  if (id == 0 && atomic_inc(state + 1) == (uint)places - 1) state[0] = state[1] = 0;
}
