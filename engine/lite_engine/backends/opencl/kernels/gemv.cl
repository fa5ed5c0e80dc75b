// Few rows (M below 8): 16 outputs a group, 16 items along K for each, summed in local memory.
//@ options HALF WIDE_OUT ACT(x) ACT_A:number ACT_B:number
//@ kernel gemv
//@ need min(O, K) > 0, K + 16 <= INT_MAX, O + 16 <= INT_MAX
//@ group 256, 1
//@ items up(O, 16) * 256, g1
//@ local 16 * 17 * 4
//@ reads x[g1 * K], w[(K - 1) * OP + up(O, 16) * 16], bias[O]
//@ writes y[g1 * O]
kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void gemv(global const T *x, global const T *w, global const float *bias, global T *y, int O, int K,
          int OP) {
  local float sums[16][17];
  const int id = get_local_id(0), lane = id % 16, slice = id / 16;
  const int n = get_group_id(0) * 16 + lane, m = get_group_id(1);
  float s = 0;
  for (int k = slice; k < K; k += 16) s += LD(x, (size_t)m * K + k) * LD(w, (size_t)k * OP + n);
  sums[slice][lane] = s;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (slice == 0 && n < O) {
    float v = bias[n];
    for (int p = 0; p < 16; ++p) v += sums[p][lane];
    ST(y, (size_t)m * O + n, ACT(v));
  }
}
