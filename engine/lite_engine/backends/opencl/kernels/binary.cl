// y = ACT(OP(a, b)) with broadcasting: element strides of a and b over up to six axes of y. V neighbours
// along the last axis an item; an operand has neighbours there (-DA_WIDE, -DB_WIDE) or repeats one.
//@ options HALF HALF_TYPES ALIGNED V=1,2,4,8,16 A_WIDE B_WIDE OP(p,q) ACT(x) ACT_A:number ACT_B:number
#ifdef A_WIDE
#define LDA(p, i) LDV(p, i)
#define A_STEP 1
#else
#define A_STEP 0
#define LDA(p, i) (FV)(LD(p, i))
#endif
#ifdef B_WIDE
#define LDB(p, i) LDV(p, i)
#define B_STEP 1
#else
#define B_STEP 0
#define LDB(p, i) (FV)(LD(p, i))
#endif

//@ kernel binary
//@ let d0 = n / (d1 * d2 * d3 * d4 * d5)
//@ need min(d0, d1, d2, d3, d4, d5) > 0, d0 * d1 * d2 * d3 * d4 * d5 == n, d5 % V == 0
//@ need min(a0, a1, a2, a3, a4, a5) >= 0, min(b0, b1, b2, b3, b4, b5) >= 0
//@ need a0 % V + a1 % V + a2 % V + a3 % V + a4 % V == 0 when ALIGNED * A_WIDE
//@ need b0 % V + b1 % V + b2 % V + b3 % V + b4 % V == 0 when ALIGNED * B_WIDE
//@ let a_row = (d0 - 1) * a0 + (d1 - 1) * a1 + (d2 - 1) * a2 + (d3 - 1) * a3 + (d4 - 1) * a4
//@ let b_row = (d0 - 1) * b0 + (d1 - 1) * b1 + (d2 - 1) * b2 + (d3 - 1) * b3 + (d4 - 1) * b4
//@ items n / V
//@ reads a[a_row + (d5 - V) * a5 + 1 + A_WIDE * (V - 1)], b[b_row + (d5 - V) * b5 + 1 + B_WIDE * (V - 1)]
//@ writes y[n]
kernel void binary(global const T *a, global const T *b, global T *y, int n, int d1, int d2, int d3,
                   int d4, int d5, int a0, int a1, int a2, int a3, int a4, int a5, int b0, int b1,
                   int b2, int b3, int b4, int b5) {
  const int i = get_global_id(0);
  if (i >= n / V) return;
  int r = i;
  const int i5 = r % (d5 / V) * V; r /= d5 / V;
  const int i4 = r % d4; r /= d4;
  const int i3 = r % d3; r /= d3;
  const int i2 = r % d2; r /= d2;
  const int i1 = r % d1; r /= d1;
  const FV p = LDA(a, r * a0 + i1 * a1 + i2 * a2 + i3 * a3 + i4 * a4 + i5 * a5);
  const FV q = LDB(b, r * b0 + i1 * b1 + i2 * b2 + i3 * b3 + i4 * b4 + i5 * b5);
  const FV v = OP(p, q);
  const FV done = ACT(v);
  STV(y, i * V, done);
}

// n neighbours of both operands, or of one beside a single number of the other.
static inline void neighbours(global const T *a, global const T *b, global T *y, int n) {
  int i = 0;
  for (; i + V <= n; i += V) {
    const FV p = LDA(a, i * A_STEP), q = LDB(b, i * B_STEP);
    const FV v = OP(p, q);
    const FV done = ACT(v);
    STV(y, i, done);
  }
  for (; i < n; ++i) {
    const float p = LD(a, i * A_STEP), q = LD(b, i * B_STEP);
    const float v = OP(p, q);
    const float done = ACT(v);
    ST(y, i, done);
  }
}

// Each operand has y's shape, or is a single number.
//@ kernel binary_same
//@ items up(n, V)
//@ need (g0 + 1) * V <= INT_MAX
//@ reads a[1], b[1]
//@ reads a[n] when A_WIDE
//@ reads b[n] when B_WIDE
//@ writes y[n]
kernel void binary_same(global const T *a, global const T *b, global T *y, int n) {
  const int i = get_global_id(0) * V;
  if (i < n) neighbours(a + i * A_STEP, b + i * B_STEP, y + i, min(V, n - i));
}

// For CPUs: rows of `width`, `per_item` of them an item; a_row and b_row elements apart.
//@ kernel binary_rows
//@ need min(rows, width, per_item) > 0, rows + per_item <= INT_MAX, width + V <= INT_MAX, ALIGNED == 0
//@ group 1
//@ items up(rows, per_item)
//@ reads a[0, rows, a_row, 1], b[0, rows, b_row, 1]
//@ reads a[0, rows, a_row, width] when A_WIDE
//@ reads b[0, rows, b_row, width] when B_WIDE
//@ writes y[rows * width]
kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void binary_rows(global const T *a, global const T *b, global T *y, int rows, int width, int a_row,
                 int b_row, int per_item) {
  const int first = get_global_id(0) * per_item;
  for (int row = first; row < min(first + per_item, rows); ++row)
    neighbours(a + row * a_row, b + row * b_row, y + row * width, width);
}
