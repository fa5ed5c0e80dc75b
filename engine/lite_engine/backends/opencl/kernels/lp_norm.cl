// x / |x|p over the middle axis of (outer, n, inner), 0 where the norm is 0; p is 2 (-DSQUARES) or 1.
// V inner indices an item.
//@ options HALF HALF_TYPES ALIGNED V=1,2,4,8,16 ITEMS=1..64 HOLD=0..8 SQUARES
#ifdef SQUARES
#define PART(v) ((v) * (v))
#define NORM(sum) sqrt(sum)
#else
#define PART(v) fabs(v)
#define NORM(sum) (sum)
#endif
#define SCALED(v, norm) ((norm) == 0.0f ? 0.0f : (v) / (norm))

//@ kernel lp_norm
//@ need min(outer, n, inner) > 0, inner % V == 0, (g0 + 1) * V <= INT_MAX
//@ items outer * inner / V
//@ reads x[outer * n * inner]
//@ writes y[outer * n * inner]
kernel void lp_norm(global const T *x, global T *y, int outer, int n, int inner) {
  const int i = get_global_id(0) * V;
  if (i >= outer * inner) return;
  const int at = i / inner * n * inner + i % inner;
  FV sum = 0;
  for (int k = 0; k < n; ++k) {
    const FV v = LDV(x, at + k * inner);
    sum += PART(v);
  }
  const FV norm = NORM(sum);
  for (int k = 0; k < n; ++k) {
    const FV done = SCALED(LDV(x, at + k * inner), norm);
    STV(y, at + k * inner, done);
  }
}

// The same of rows (inner is 1), each by a group of ITEMS work-items.
#ifdef ITEMS
#define ADD(s, t) ((s) + (t))
//@ kernel lp_norm_row
//@ let rows = g0 / ITEMS
//@ group ITEMS
//@ items rows * ITEMS
//@ need n >= 0, n + 16 * ITEMS <= INT_MAX
//@ need n % V == 0 when ALIGNED
//@ local (ITEMS + 8) * 4
//@ reads x[rows * n]
//@ writes y[rows * n]
kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void lp_norm_row(global const T *x, global T *y, int n) {
  local float part[PARTS];
  const int id = get_local_id(0), whole = n / V * V;
  x += (size_t)get_group_id(0) * n;
  y += (size_t)get_group_id(0) * n;
  FV many = 0;
  float sum = 0;
  HELD(x);
  EACH_HELD(many += PART(held));
  FOLD(many, sum, ADD);
  for (int k = whole + id; k < n; k += ITEMS) sum += PART(LD(x, k));
  TOGETHER(part, id, sum, ADD);
  const float norm = NORM(sum);
  EACH_HELD({
    const FV done = SCALED(held, norm);
    STV(y, k, done);
  });
  for (int k = whole + id; k < n; k += ITEMS) {
    const float done = SCALED(LD(x, k), norm);
    ST(y, k, done);
  }
}
#endif
