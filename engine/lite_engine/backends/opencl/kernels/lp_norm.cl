// x / |x|p over the middle axis of (outer, n, inner), 0 where the norm is 0; p is 2 (-DSQUARES) or 1.
// V inner indices an item.
//@ options HALF HALF_TYPES ALIGNED V=1,2,4,8,16 ITEMS=1..64 HOLD=0..8 LANES=4,8,16 SQUARES
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

// The same by groups of LANES neighbouring rows and SLICES items for each, where rows alone would leave a
// GPU idle.
#ifdef LANES
#define SLICES (256 / LANES)
//@ kernel lp_norm_group
//@ need min(outer, n, inner) > 0, n + 256 <= INT_MAX, (outer * inner + 16) * n + inner <= INT_MAX
//@ group 256
//@ items up(outer * inner, LANES) * 256
//@ local 256 / LANES * (LANES + 1) * 4
//@ reads x[outer * n * inner]
//@ writes y[outer * n * inner]
kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void lp_norm_group(global const T *x, global T *y, int outer, int n, int inner) {
  local float part[SLICES][LANES + 1];
  const int id = get_local_id(0), lane = id % LANES, slice = id / LANES;
  const int i = get_group_id(0) * LANES + lane, inside = i < outer * inner;
  const int at = i / inner * n * inner + i % inner;
  float sum = 0;
  for (int k = slice; inside && k < n; k += SLICES) {
    const float v = LD(x, at + k * inner);
    sum += PART(v);
  }
  part[slice][lane] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  sum = 0;
  for (int p = 0; p < SLICES; ++p) sum += part[p][lane];
  const float norm = NORM(sum);
  for (int k = slice; inside && k < n; k += SLICES) {
    const float done = SCALED(LD(x, at + k * inner), norm);
    ST(y, at + k * inner, done);
  }
}
#endif
