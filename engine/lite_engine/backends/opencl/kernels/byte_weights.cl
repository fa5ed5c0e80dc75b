// Products of few rows with weights of 8 bits, which are widened as they are read: y (M, N) = END(scale[n] ·
// (x (M, K) · Wᵀ) + bias[n] + residual (M, N)), W (N, K) of signed bytes. Whoever makes an output makes ROWS rows of
// it and reads each weight once for them.
//@ options HALF HALF_TYPES ALIGNED FAST_FMA V=1,4,8,16 ROWS=1..8 ITEMS=1..64 ACT(x) ACT_A:number ACT_B:number
#define ADD(s, t) ((s) + (t))
#if V == 1
#define WIDENED(p) ((float)*(p))
#else
#define WIDENED(p) PASTE(convert_float, V)(PASTE(vload, V)(0, (p)))
#endif

// What one of `items` items sums up of a row of weights, for rows from x + at[r] on: every items-th vector.
static inline void sums_of(global const T *x, const size_t *at, global const char *w, int K, int id, int items,
                    float *sums) {
  const int whole = K / V * V;
  FV many[ROWS];
  UNROLL for (int r = 0; r < ROWS; ++r) many[r] = 0;
  for (int k = id * V; k < whole; k += items * V) {
    const FV q = WIDENED(w + k);
    UNROLL for (int r = 0; r < ROWS; ++r) many[r] = FMA(LDV(x, at[r] + k), q, many[r]);
  }
  UNROLL for (int r = 0; r < ROWS; ++r) {
    float s = 0;
    FOLD(many[r], s, ADD);
    for (int k = whole + id; k < K; k += items) s += LD(x, at[r] + k) * (float)w[k];
    sums[r] = s;
  }
}

#define ROWS_AT(first) \
  size_t at[ROWS];     \
  UNROLL for (int r = 0; r < ROWS; ++r) at[r] = (size_t)min((first) + r, M - 1) * K

static inline void put(float v, global const T *residual, global T *y, size_t to, ENDING) {
  if (with_residual) v += LD(residual, to);
  const float done = END(v);
  ST(y, to, done);
}

#ifdef ITEMS
// Each output by a group.
//@ kernel byte_groups
//@ group ITEMS, 1
//@ items N * ITEMS, up(M, ROWS)
//@ local (ITEMS + 8) * 4
//@ need min(M, N) > 0, K >= 0, K + V * ITEMS <= INT_MAX, M + ROWS <= INT_MAX
//@ need K % V == 0 when ALIGNED
//@ reads x[M * K], w[N * K], scale[N], bias[N]
//@ reads residual[M * N] when with_residual
//@ writes y[M * N]
kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void byte_groups(global const T *x, global const char *w, global const float *scale,
                 global const float *bias, global const T *residual, global T *y, int M, int N, int K,
                 ENDING) {
  local float part[PARTS];
  const int id = get_local_id(0), n = get_group_id(0), first = get_group_id(1) * ROWS;
  float sums[ROWS];
  ROWS_AT(first);
  sums_of(x, at, w + (size_t)n * K, K, id, ITEMS, sums);
  UNROLL for (int r = 0; r < ROWS; ++r) {
    float s = sums[r];
    TOGETHER(part, id, s, ADD);
    if (id == 0 && first + r < M)
      put(scale[n] * s + bias[n], residual, y, (size_t)(first + r) * N + n, ENDING_ARGS);
  }
}
#else
// Each output by an item.
//@ kernel byte_rows
//@ items N, up(M, ROWS)
//@ need min(M, N) > 0, K >= 0, K + V <= INT_MAX, M + ROWS <= INT_MAX
//@ need K % V == 0 when ALIGNED
//@ reads x[M * K], w[N * K], scale[N], bias[N]
//@ reads residual[M * N] when with_residual
//@ writes y[M * N]
kernel void byte_rows(global const T *x, global const char *w, global const float *scale,
                      global const float *bias, global const T *residual, global T *y, int M, int N,
                      int K, ENDING) {
  const int n = get_global_id(0), first = get_global_id(1) * ROWS;
  if (n >= N || first >= M) return;
  float sums[ROWS];
  ROWS_AT(first);
  sums_of(x, at, w + (size_t)n * K, K, 0, 1, sums);
  for (int r = 0; r < min(ROWS, M - first); ++r)
    put(scale[n] * sums[r] + bias[n], residual, y, (size_t)(first + r) * N + n, ENDING_ARGS);
}
#endif
