// Softmax over the middle axis of (outer, n, inner); -DLOGARITHM its logarithm. V inner indices an item.
//@ options HALF HALF_TYPES ALIGNED V=1,2,4,8,16 ITEMS=1..64 HOLD=0..16 LANES=4,8,16 LOGARITHM
#ifdef LOGARITHM
#define RESULT(d, sum) ((d) - log(sum))
#else
#define RESULT(d, sum) (exp(d) / (sum))
#endif

//@ kernel softmax
//@ need min(outer, n, inner) > 0, inner % V == 0, (g0 + 1) * V <= INT_MAX
//@ items outer * inner / V
//@ reads x[outer * n * inner]
//@ writes y[outer * n * inner]
kernel void softmax(global const T *x, global T *y, int outer, int n, int inner) {
  const int i = get_global_id(0) * V;
  if (i >= outer * inner) return;
  const int at = i / inner * n * inner + i % inner;
  FV top = -INFINITY, sum = 0;
  for (int k = 0; k < n; ++k) top = fmax(top, LDV(x, at + k * inner));
  for (int k = 0; k < n; ++k) sum += exp(LDV(x, at + k * inner) - top);
  for (int k = 0; k < n; ++k) {
    const FV d = LDV(x, at + k * inner) - top;
    const FV done = RESULT(d, sum);
    STV(y, at + k * inner, done);
  }
}

// The same of rows (inner is 1), each by a group of ITEMS work-items.
#ifdef ITEMS
#define ADD(s, t) ((s) + (t))
//@ kernel softmax_row
//@ let rows = g0 / ITEMS
//@ group ITEMS
//@ items rows * ITEMS
//@ need n >= 0, n + 16 * ITEMS <= INT_MAX
//@ need n % V == 0 when ALIGNED
//@ local (ITEMS + 8) * 4
//@ reads x[rows * n]
//@ writes y[rows * n]
kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void softmax_row(global const T *x, global T *y, int n) {
  local float part[PARTS];
  const int id = get_local_id(0), whole = n / V * V;
  x += (size_t)get_group_id(0) * n;
  y += (size_t)get_group_id(0) * n;
  FV many = -INFINITY;
  float top = -INFINITY, sum = 0;
  HELD(x);
  EACH_HELD(many = fmax(many, held));
  FOLD(many, top, fmax);
  for (int k = whole + id; k < n; k += ITEMS) top = fmax(top, LD(x, k));
  TOGETHER(part, id, top, fmax);
  many = 0;
  EACH_HELD(many += exp(held - top));
  FOLD(many, sum, ADD);
  for (int k = whole + id; k < n; k += ITEMS) sum += exp(LD(x, k) - top);
  TOGETHER(part, id, sum, ADD);
  EACH_HELD({
    const FV d = held - top;
    const FV done = RESULT(d, sum);
    STV(y, k, done);
  });
  for (int k = whole + id; k < n; k += ITEMS) {
    const float d = LD(x, k) - top;
    const float done = RESULT(d, sum);
    ST(y, k, done);
  }
}
#endif

// The same by groups of LANES neighbouring rows and SLICES items for each, where rows alone would leave a
// GPU idle. An item keeps its HOLD numbers of a row, which it loads all at once.
#ifdef LANES
#define SLICES (256 / LANES)
#if HOLD
#define EACH_OF_ROW UNROLL for (int h = 0, k = slice; h < HOLD; ++h, k += SLICES) if (inside && k < n)
#define OWN held[h]
#else
#define EACH_OF_ROW for (int k = slice; inside && k < n; k += SLICES)
#define OWN LD(x, at + k * inner)
#endif
//@ kernel softmax_group
//@ need min(outer, n, inner) > 0, n + 256 <= INT_MAX, (outer * inner + 16) * n + inner <= INT_MAX
//@ need n * LANES <= 256 * HOLD when HOLD
//@ group 256
//@ items up(outer * inner, LANES) * 256
//@ local 256 / LANES * (LANES + 1) * 4
//@ reads x[outer * n * inner]
//@ writes y[outer * n * inner]
kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void softmax_group(global const T *x, global T *y, int outer, int n, int inner) {
  local float part[SLICES][LANES + 1];
  const int id = get_local_id(0), lane = id % LANES, slice = id / LANES;
  const int i = get_group_id(0) * LANES + lane, inside = i < outer * inner;
  const int at = i / inner * n * inner + i % inner;
  float top = -INFINITY, sum = 0;
#if HOLD
  float held[HOLD];
  EACH_OF_ROW held[h] = LD(x, at + k * inner);
#endif
  EACH_OF_ROW top = fmax(top, OWN);
  part[slice][lane] = top;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int p = 0; p < SLICES; ++p) top = fmax(top, part[p][lane]);
  barrier(CLK_LOCAL_MEM_FENCE);
  EACH_OF_ROW sum += exp(OWN - top);
  part[slice][lane] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  sum = 0;
  for (int p = 0; p < SLICES; ++p) sum += part[p][lane];
  EACH_OF_ROW {
    const float d = OWN - top;
    const float done = RESULT(d, sum);
    ST(y, at + k * inner, done);
  }
}
#endif
