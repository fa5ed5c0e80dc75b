// PairwiseDistance: an item has a row of a and b.
//@ options HALF EPS:number A_LAST=1..2147483647
//@ kernel pairwise_distance
//@ need n * A_LAST <= INT_MAX
//@ items n
//@ reads a[n * A_LAST], b[n * A_LAST]
//@ writes y[n]
kernel void pairwise_distance(global const T *a, global const T *b, global T *y, int n) {
  const int row = get_global_id(0), wide = A_LAST;
  if (row >= n) return;
  float s = 0;
  for (int i = row * wide; i < (row + 1) * wide; ++i) {
    const float d = LD(a, i) - LD(b, i) + EPS;
    s += d * d;
  }
  ST(y, row, sqrt(s));
}
