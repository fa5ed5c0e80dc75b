// x (outer, n, inner) → y (outer, inner). STEP folds a value into `s`, MERGE joins two partial results,
// DONE finishes one. V inner indices an item.
//@ options HALF HALF_TYPES ALIGNED V=1,2,4,8,16 ITEMS=1..64 HOLD=0..8 LANES=4,8,16
//@ options START:number STEP(s,v) DONE(s,n) MERGE(s,t)
//@ kernel reduce
//@ need min(outer, n, inner) > 0, inner % V == 0, (g0 + 1) * V <= INT_MAX
//@ items outer * inner / V
//@ reads x[outer * n * inner]
//@ writes y[outer * inner]
kernel void reduce(global const T *x, global T *y, int outer, int n, int inner) {
  const int i = get_global_id(0) * V;
  if (i >= outer * inner) return;
  const int at = i / inner * n * inner + i % inner;
  FV s = START;
  for (int k = 0; k < n; ++k) {
    const FV v = LDV(x, at + k * inner);
    s = STEP(s, v);
  }
  s = DONE(s, (float)n);
  STV(y, i, s);
}

// The same of rows (inner is 1), each by a group of ITEMS work-items.
#ifdef ITEMS
//@ kernel reduce_row
//@ let rows = g0 / ITEMS
//@ group ITEMS
//@ items rows * ITEMS
//@ need n >= 0, n + 16 * ITEMS <= INT_MAX
//@ need n % V == 0 when ALIGNED
//@ local (ITEMS + 8) * 4
//@ reads x[rows * n]
//@ writes y[rows]
kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void reduce_row(global const T *x, global T *y, int n) {
  local float part[PARTS];
  const int id = get_local_id(0), whole = n / V * V;
  x += (size_t)get_group_id(0) * n;
  FV many = START;
  float s = START;
  for (int k = id * V; k < whole; k += ITEMS * V) {
    const FV v = LDV(x, k);
    many = STEP(many, v);
  }
  FOLD(many, s, MERGE);
  for (int k = whole + id; k < n; k += ITEMS) {
    const float v = LD(x, k);
    s = STEP(s, v);
  }
  TOGETHER(part, id, s, MERGE);
  s = DONE(s, (float)n);
  if (id == 0) ST(y, get_group_id(0), s);
}
#endif

// The same by groups of LANES neighbouring outputs and SLICES items for each, where outputs alone
// would leave a GPU idle.
#ifdef LANES
#define SLICES (256 / LANES)
// What the items of output i fold, the first of them to the end; number k lies at `place`.
#define BY_SLICES(place)                                     \
  float s = START;                                           \
  for (int k = slice; inside && k < n; k += SLICES) {        \
    const float v = LD(x, place);                            \
    s = STEP(s, v);                                          \
  }                                                          \
  part[slice][lane] = s;                                     \
  barrier(CLK_LOCAL_MEM_FENCE);                              \
  if (slice != 0 || !inside) return;                         \
  for (int p = 1; p < SLICES; ++p) s = MERGE(s, part[p][lane]); \
  s = DONE(s, (float)n);                                     \
  ST(y, i, s)
//@ kernel reduce_group
//@ need min(outer, n, inner) > 0, n + 256 <= INT_MAX, (outer * inner + 16) * n + inner <= INT_MAX
//@ group 256
//@ items up(outer * inner, LANES) * 256
//@ local 256 / LANES * (LANES + 1) * 4
//@ reads x[outer * n * inner]
//@ writes y[outer * inner]
kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void reduce_group(global const T *x, global T *y, int outer, int n, int inner) {
  local float part[SLICES][LANES + 1];
  const int id = get_local_id(0), lane = id % LANES, slice = id / LANES;
  const int i = get_group_id(0) * LANES + lane, inside = i < outer * inner;
  const int at = i / inner * n * inner + i % inner;
  BY_SLICES(at + k * inner);
}
#endif

// The same where reduced axes lie apart: x is (A0, B0, A1, B1, A2, B2, A3) and y (A0, A1, A2, A3), a work-item
// an output. Where in x the first number of output i is, and how far behind it the number k.
#define FIRST(i)                                                                          \
  (((((i) / A3 / A2 / A1 * B0 * A1 + (i) / A3 / A2 % A1) * B1 * A2 + (i) / A3 % A2) * B2) * A3 + (i) % A3)
#define BEHIND(k) ((((k) / B2 / B1 * A1 * B1 + (k) / B2 % B1) * A2 * B2 + (k) % B2) * A3)
//@ kernel reduce_apart
//@ need min(A0, A1, A2, A3, B0, B1, B2) > 0, (A0 * A1 * A2 * A3 + 128) * B0 * B1 * B2 <= INT_MAX
//@ items A0 * A1 * A2 * A3
//@ reads x[A0 * B0 * A1 * B1 * A2 * B2 * A3]
//@ writes y[A0 * A1 * A2 * A3]
kernel void reduce_apart(global const T *x, global T *y, int A0, int B0, int A1, int B1, int A2,
                         int B2, int A3) {
  const int i = get_global_id(0), n = B0 * B1 * B2;
  if (i >= A0 * A1 * A2 * A3) return;
  const int at = FIRST(i);
  float s = START;
  for (int k = 0; k < n; ++k) {
    const float v = LD(x, at + BEHIND(k));
    s = STEP(s, v);
  }
  s = DONE(s, (float)n);
  ST(y, i, s);
}

// The same by groups of LANES outputs and SLICES items for each, which read neighbours together: of what is
// kept, or where the innermost axis is reduced of that.
#ifdef LANES
//@ kernel reduce_apart_group
//@ need min(A0, A1, A2, A3, B0, B1, B2) > 0, (A0 * A1 * A2 * A3 + 16) * B0 * B1 * B2 <= INT_MAX
//@ need B0 * B1 * B2 + 256 <= INT_MAX
//@ group 256
//@ items up(A0 * A1 * A2 * A3, LANES) * 256
//@ local 256 / LANES * (LANES + 1) * 4
//@ reads x[A0 * B0 * A1 * B1 * A2 * B2 * A3]
//@ writes y[A0 * A1 * A2 * A3]
kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void reduce_apart_group(global const T *x, global T *y, int A0, int B0, int A1, int B1, int A2,
                        int B2, int A3) {
  local float part[SLICES][LANES + 1];
  const int id = get_local_id(0);
  const int lane = A3 > 1 ? id % LANES : id / SLICES, slice = A3 > 1 ? id / LANES : id % SLICES;
  const int i = get_group_id(0) * LANES + lane, n = B0 * B1 * B2, inside = i < A0 * A1 * A2 * A3;
  const int at = FIRST(i);
  BY_SLICES(at + BEHIND(k));
}
#endif
