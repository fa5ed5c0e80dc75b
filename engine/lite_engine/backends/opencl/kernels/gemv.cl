// Few rows (M below 8): a group makes LANES * V outputs. 256 / LANES of its items share the K products of V outputs
// and add up in local memory: as many reads under way as memory needs to be busy, in runs of LANES * V weights.
//@ options HALF HALF_TYPES ALIGNED V=1,2,4,8,16 LANES=1,2,4,8,16 WIDE_OUT ACT(x) ACT_A:number ACT_B:number
#define WIDE (LANES * V)
#define SLICES (256 / LANES)
#define PIECES (256 / WIDE)
//@ kernel gemv
//@ let wide = LANES * V
//@ need min(O, K) > 0, K + 1024 <= INT_MAX, O + wide <= INT_MAX, OP % V == 0, wide <= 256
//@ group 256, 1
//@ items up(O, wide) * 256, g1
//@ local 256 * (V + 1) * 4
//@ reads x[g1 * K], w[(K - 1) * OP + up(O, wide) * wide], bias[O]
//@ writes y[g1 * O]
kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void gemv(global const T *x, global const T *w, global const float *bias, global T *y, int O, int K,
          int OP) {
  local float sums[256 * V], parts[256];
  const int id = get_local_id(0), slice = id / LANES;
  const int first = get_group_id(0) * WIDE, m = get_group_id(1);
  x += (size_t)m * K;
  w += first + id % LANES * V;
  FV s = 0;
  int k = slice;
  for (; k + 3 * SLICES < K; k += 4 * SLICES) {
    const FV a = LDV(w, (size_t)k * OP), b = LDV(w, (size_t)(k + SLICES) * OP);
    const FV c = LDV(w, (size_t)(k + 2 * SLICES) * OP), d = LDV(w, (size_t)(k + 3 * SLICES) * OP);
    s = FMA(LD(x, k), a, s);
    s = FMA(LD(x, k + SLICES), b, s);
    s = FMA(LD(x, k + 2 * SLICES), c, s);
    s = FMA(LD(x, k + 3 * SLICES), d, s);
  }
  for (; k < K; k += SLICES) {
    const FV a = LDV(w, (size_t)k * OP);
    s = FMA(LD(x, k), a, s);
  }
  STFV(sums, id * V, s);
  barrier(CLK_LOCAL_MEM_FENCE);
  const int o = id % WIDE, piece = id / WIDE;
  float part = 0;
  for (int p = piece; p < SLICES; p += PIECES) part += sums[p * WIDE + o];
  parts[id] = part;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (piece == 0 && first + o < O) {
    float v = bias[first + o];
    for (int p = 0; p < PIECES; ++p) v += parts[p * WIDE + o];
    ST(y, (size_t)m * O + first + o, ACT(v));
  }
}
