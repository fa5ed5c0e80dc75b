// MatMulNBits: y (m, n) = ACT(x (m, k) · Wᵀ + bias), W (n, k) of 4 bits, two to a byte, the first in the low half.
// Groups of `block` neighbouring k share a scale and, with ZEROS, a zero point (8 without).
// An item makes ROWS rows of one column and reads each weight once for them.
//@ options HALF ACT(x) ACT_A:number ACT_B:number ZEROS ROWS=1..8
//@ kernel matmul_nbits
//@ need min(m, n) > 0, min(k, block / 2) > 0, block % 2 == 0, k + block <= INT_MAX, m + ROWS <= INT_MAX
//@ items n, up(m, ROWS)
//@ reads x[m * k], b[(n - 1) * up(k, block) * (block / 2) + up(k, 2)], scales[n * up(k, block)], bias[n]
//@ reads zeros[n * up(up(k, block), 2)] when ZEROS
//@ writes y[m * n]
kernel void matmul_nbits(global const T *x, global const uchar *b, global const float *scales,
                         global const uchar *zeros, global const float *bias, global T *y, int m,
                         int n, int k, int block) {
  const int column = get_global_id(0), first = get_global_id(1) * ROWS;
  if (column >= n || first >= m) return;
  const int groups = (k + block - 1) / block;
  global const uchar *row = b + (size_t)column * groups * (block / 2);
  float total[ROWS];
  for (int r = 0; r < ROWS; ++r) total[r] = bias[column];
  for (int g = 0; g < groups; ++g) {
    float sums[ROWS], inputs[ROWS];
    for (int r = 0; r < ROWS; ++r) sums[r] = inputs[r] = 0;
    const int end = min(g * block + block, k);
    for (int at = g * block; at < end; ++at) {
      const int both = row[at / 2];
      const float q = convert_float(at % 2 ? both >> 4 : both & 15);
      for (int r = 0; r < ROWS; ++r) {
        const float v = LD(x, (size_t)min(first + r, m - 1) * k + at);
        sums[r] += v * q;
        inputs[r] += v;
      }
    }
#ifdef ZEROS
    const int pair = zeros[(size_t)column * ((groups + 1) / 2) + g / 2];
    const float zero = convert_float(g % 2 ? pair >> 4 : pair & 15);
#else
    const float zero = 8;
#endif
    const float scale = scales[(size_t)column * groups + g];
    for (int r = 0; r < ROWS; ++r) total[r] += scale * (sums[r] - zero * inputs[r]);
  }
  for (int r = 0; r < ROWS; ++r)
    if (first + r < m) ST(y, (size_t)(first + r) * n + column, ACT(total[r]));
}
