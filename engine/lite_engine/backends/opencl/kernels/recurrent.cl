// LSTM, GRU and RNN over a sequence: a work-group has one sequence in one direction, its state in local
// memory. gx (rows, D·G·H): every step's input times W, with biases; r (D, H, G·HP): the transposed
// recurrent weights, each of G gates padded to HP places; rb (D, G·HP): what is added to h·R.
// y, y_h, y_c: element steps by time, direction and sequence.
//@ options HALF FAST_FMA V=1,2,4,8,16 G=1..4 H=1..65536 HP=1..65536 ITEMS=1..1024 REVERSE:number RESET_FIRST
//@ options INITIAL_H INITIAL_C LAST_H LAST_C F0(x) F1(x) F2(x)
#define WIDE (G * HP)
#define ROWS(first, last, state)                                   \
  for (int row = (first) + id * V; row < (last); row += ITEMS * V) { \
    FV s = LDFV(rb, row);                                          \
    for (int k = 0; k < H; ++k) s = FMA(state[k], LDFV(r, k * WIDE + row), s); \
    STFV(gates, row, s);                                           \
  }
#define GATE(g) (LD(gx, at + (g) * H + j) + gates[(g) * HP + j])

//@ kernel recurrent
//@ let sequences = g0 / ITEMS
//@ let directions = sequences / batch
//@ need batch > 0, steps > 0, directions * batch == sequences, HP % V == 0, HP >= H
//@ need G == 3 when RESET_FIRST
//@ need min(gx_time, gx_batch, y_time, y_direction, y_batch, state_direction, state_batch) >= 0
//@ let state = (directions - 1) * state_direction + (batch - 1) * state_batch + H
//@ group ITEMS
//@ items sequences * ITEMS
//@ local (3 * H + G * HP) * 4
//@ need ITEMS * V + G * HP <= INT_MAX
//@ reads gx[(steps - 1) * gx_time + (batch - 1) * gx_batch + directions * G * H]
//@ reads r[directions * H * G * HP], rb[directions * G * HP]
//@ reads h0[state] when INITIAL_H
//@ reads c0[state] when INITIAL_C
//@ writes y[(steps - 1) * y_time + (directions - 1) * y_direction + (batch - 1) * y_batch + H]
//@ writes y_h[state] when LAST_H
//@ writes y_c[state] when LAST_C
kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void recurrent(global const T *gx, global const float *r, global const float *rb, global const T *h0,
               global const T *c0, global T *y, global T *y_h, global T *y_c, int steps, int batch,
               int gx_time, int gx_batch, int y_time, int y_direction, int y_batch, int state_direction,
               int state_batch) {
  local float h[H], c[H], gates[WIDE];
#ifdef RESET_FIRST
  local float reset[H];
#endif
  const int id = get_local_id(0), d = get_group_id(0) / batch, b = get_group_id(0) % batch;
#define STATE(j) (d * state_direction + b * state_batch + (j))
  r += (size_t)d * H * WIDE;
  rb += d * WIDE;
  for (int j = id; j < H; j += ITEMS) {
#ifdef INITIAL_H
    h[j] = LD(h0, STATE(j));
#else
    h[j] = 0;
#endif
#ifdef INITIAL_C
    c[j] = LD(c0, STATE(j));
#else
    c[j] = 0;
#endif
  }
  for (int i = 0; i < steps; ++i) {
    const int t = REVERSE ? steps - 1 - i : i;
    const int at = t * gx_time + b * gx_batch + d * G * H;
    global T *to = y + t * y_time + d * y_direction + b * y_batch;
    barrier(CLK_LOCAL_MEM_FENCE);
#ifdef RESET_FIRST
    ROWS(0, 2 * HP, h)
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int j = id; j < H; j += ITEMS) reset[j] = F0(GATE(1)) * h[j];
    barrier(CLK_LOCAL_MEM_FENCE);
    ROWS(2 * HP, 3 * HP, reset)
#else
    ROWS(0, WIDE, h)
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int j = id; j < H; j += ITEMS) {
#if G == 4
      const float in = F0(GATE(0)), forget = F0(GATE(2)), fresh = F1(GATE(3));
      c[j] = forget * c[j] + in * fresh;
      h[j] = F0(GATE(1)) * F2(c[j]);
#elif G == 3
      const float keep = F0(GATE(0));
#ifdef RESET_FIRST
      const float fresh = F1(GATE(2));
#else
      const float fresh = F1(LD(gx, at + 2 * H + j) + F0(GATE(1)) * gates[2 * HP + j]);
#endif
      h[j] = (1 - keep) * fresh + keep * h[j];
#else
      h[j] = F0(GATE(0));
#endif
      ST(to, j, h[j]);
    }
  }
  for (int j = id; j < H; j += ITEMS) {
#ifdef LAST_H
    ST(y_h, STATE(j), h[j]);
#endif
#ifdef LAST_C
    ST(y_c, STATE(j), c[j]);
#endif
  }
}
