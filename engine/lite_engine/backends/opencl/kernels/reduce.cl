// x (outer, n, inner) → y (outer, inner). STEP folds a value into `s`, DONE finishes it.
kernel void reduce(global const T *x, global T *y, int outer, int n, int inner) {
  const int i = get_global_id(0);
  if (i >= outer * inner) return;
  const int at = i / inner * n * inner + i % inner;
  float s = START;
  for (int k = 0; k < n; ++k) {
    const float v = LD(x, at + k * inner);
    s = STEP(s, v);
  }
  s = DONE(s, (float)n);
  ST(y, i, s);
}

// The same by groups of 16 neighbouring outputs and 16 items for each, where outputs alone would
// leave a GPU idle. MERGE joins two partial results.
kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void reduce_group(global const T *x, global T *y, int outer, int n, int inner) {
  local float part[16][17];
  const int id = get_local_id(0), lane = id % 16, slice = id / 16;
  const int i = get_group_id(0) * 16 + lane, inside = i < outer * inner;
  const int at = i / inner * n * inner + i % inner;
  float s = START;
  for (int k = slice; inside && k < n; k += 16) {
    const float v = LD(x, at + k * inner);
    s = STEP(s, v);
  }
  part[slice][lane] = s;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (slice != 0 || !inside) return;
  for (int p = 1; p < 16; ++p) s = MERGE(s, part[p][lane]);
  s = DONE(s, (float)n);
  ST(y, i, s);
}
