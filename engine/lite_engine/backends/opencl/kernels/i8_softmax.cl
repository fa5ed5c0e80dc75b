// Softmax of bytes over the middle axis of (outer, n, inner); a group of ITEMS work-items (a power of two) makes
// one series. With e[d] = rint(2^30·exp(-d·scale)) and S the sum of all e, the answer to a byte d below the
// highest is `lowest` plus the number of thresholds that e[d] / S reaches, rounded as a double. It reaches
// number k where e·2^shifts[k] >= S·factors[k] + above[k], in whole numbers of 128 bits.
//@ options ITEMS=1..1024
static inline int reaches(ulong e, ulong sum, ulong factor, int shift, int above) {
  const ulong low = sum * factor + (ulong)above;
  const ulong high = mul_hi(sum, factor) + (ulong)(low < (ulong)above);
  const ulong e_low = shift < 64 ? e << shift : 0;
  const ulong e_high = shift == 0 ? 0 : shift < 64 ? e >> (64 - shift) : e << (shift - 64);
  return e_high > high || (e_high == high && e_low >= low);
}

//@ kernel softmax
//@ let series = g0 / ITEMS
//@ group ITEMS
//@ items series * ITEMS
//@ need min(n, inner) > 0, n + ITEMS <= INT_MAX, count >= 0
//@ local ITEMS * 12 + 256
//@ reads x[up(series, inner) * n * inner], e[256], factors[count], shifts[count], above[count]
//@ writes y[up(series, inner) * n * inner]
kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void softmax(global const uchar *x, global uchar *y, global const uint *e, global const ulong *factors,
             global const int *shifts, global const int *above, int n, int inner, int flip, int lowest, int count) {
  local int tops[ITEMS];
  local ulong sums[ITEMS];
  local uchar answers[256];
  const int id = get_local_id(0), series = get_group_id(0);
  const size_t at = (size_t)(series / inner) * n * inner + series % inner;
  x += at;
  y += at;
  int top = 0;
  for (int k = id; k < n; k += ITEMS) top = max(top, (int)FLIP(x[(size_t)k * inner], flip));
  tops[id] = top;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int k = 0; k < ITEMS; ++k) top = max(top, tops[k]);
  ulong sum = 0;
  for (int k = id; k < n; k += ITEMS) sum += e[top - (int)FLIP(x[(size_t)k * inner], flip)];
  sums[id] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  sum = 0;
  for (int k = 0; k < ITEMS; ++k) sum += sums[k];
  for (int d = id; d <= top; d += ITEMS) {
    int reached = 0;
    for (int step = 128; step; step /= 2) {
      const int k = reached + step - 1;
      if (k < count && reaches(e[d], sum, factors[k], shifts[k], above[k])) reached += step;
    }
    answers[d] = FLIP((uchar)(lowest + reached), flip);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int k = id; k < n; k += ITEMS) y[(size_t)k * inner] = answers[top - (int)FLIP(x[(size_t)k * inner], flip)];
}
