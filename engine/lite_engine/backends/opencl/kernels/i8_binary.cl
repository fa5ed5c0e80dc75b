// Operators on two tensors of bytes, in one of these ways:
// - OP: y = clamp(rint((a - a_zero)·a_scale OP (b - b_zero)·b_scale) / y_scale) + y_zero); with BY_PRODUCT `inverse`
//   is a factor in place of 1 / y_scale
// - SHIFTED, LiteRT's sum: y = clamp(((a·a_whole + b·b_whole + y_whole) >> y_exponent) + y_zero)
// - PRELU and SQUARES, in LiteRT's fixed point: native/src/ops/fixed_point.h has the same formulas, as for `product`
//@ options V=1,4,8,16 ALIGNED OP(p,q) BY_PRODUCT SHIFTED PRELU SQUARES ROWS=1..8
#if V == 1
#define LV long
#define TO_LONG(v) ((long)(v))
#define FROM_LONG(v) ((int)(v))
#else
#define LV PASTE(long, V)
#define TO_LONG(v) PASTE(convert_long, V)(v)
#define FROM_LONG(v) PASTE(convert_int, V)(v)
#endif
#define ONE_WHERE(condition) ((condition) ? (LV)1 : (LV)0)
// x · whole / 2^31 · 2^exponent, rounded behind the fraction and behind the power of two, ties away from 0.
static inline IV rescaled(IV x, int whole, int exponent) {
  const LV most = (LV)INT_MAX, wide = TO_LONG(x) * (1L << clamp(exponent, 0, 31));
  const LV product = max(min(wide, most), -most - 1) * (LV)whole;
  const LV nudged = product + (product >= 0 ? (LV)(1L << 30) : (LV)(1 - (1L << 30)));
  const LV high = min((nudged + ((nudged >> 63) & most)) >> 31, most);
  const int right = clamp(-exponent, 0, 31);
  const LV mask = (LV)((1L << right) - 1);
  return FROM_LONG((high >> right) + ONE_WHERE((high & mask) > (mask >> 1) + ONE_WHERE(high < 0)));
}
static inline UV byte_of(IV v, int y_zero, int flip) {
  return FLIP(TO_BYTE(clamp(add_sat(v, (IV)y_zero), (IV)0, (IV)255)), flip);
}
#ifndef ROWS
static inline UV combined(UV a, UV b, OPERANDS) {
#ifdef SHIFTED
  const IV sum = TO_INT(FLIP(a, flip)) * a_whole + TO_INT(FLIP(b, flip)) * b_whole + y_whole;
  return byte_of(sum >> y_exponent, y_zero, flip);
#else
  const IV p = TO_INT(FLIP(a, flip)) - a_zero, q = TO_INT(FLIP(b, flip)) - b_zero;
#if defined(SQUARES)
  const IV apart = rescaled(p * 128, a_whole, a_exponent) - rescaled(q * 128, b_whole, b_exponent);
  return byte_of(rescaled(apart * apart, y_whole, y_exponent), y_zero, flip);
#elif defined(PRELU)
  return byte_of(p < 0 ? rescaled(p * q, b_whole, b_exponent) : rescaled(p, a_whole, a_exponent), y_zero, flip);
#else
  const FV left = TO_FLOAT(p) * a_scale, right = TO_FLOAT(q) * b_scale;
  const float most = y_scale * 1048576.0f;
  const FV real = OP(ROUNDED(left), ROUNDED(right)), near = AT_MOST(AT_LEAST(real, -most), most);
#ifdef BY_PRODUCT
  const FV ratio = near * inverse;
#else
  const FV ratio = QUOTIENT(near, y_scale, inverse);
#endif
  return nearest_byte(ratio, (float)y_zero, flip);
#endif
#endif
}

// Rows of `width` bytes; rows of a and b lie AP and BP elements apart, 0 for one row that all share.
//@ kernel binary_rows
//@ need min(width, rows) > 0, width % V == 0, (g0 + 1) * V <= INT_MAX
//@ need AP % V + BP % V == 0 when ALIGNED
//@ items width / V, rows
//@ reads a[0, rows, AP, width], b[0, rows, BP, width]
//@ writes y[rows * width]
kernel void binary_rows(global const uchar *a, global const uchar *b, global uchar *y, int width, int rows, int AP,
                        int BP, OPERANDS) {
  const int i = get_global_id(0) * V, row = get_global_id(1);
  if (i >= width || row >= rows) return;
  const UV p = LDB(a, (size_t)row * AP + i), q = LDB(b, (size_t)row * BP + i);
  STB(y, (size_t)row * width + i, combined(p, q, OPERANDS_ARGS));
}

// Any broadcast over six axes, a byte at a time.
#if V == 1
//@ kernel binary
//@ let d0 = total / (d1 * d2 * d3 * d4 * d5)
//@ need min(d0, d1, d2, d3, d4, d5) > 0, d0 * d1 * d2 * d3 * d4 * d5 == total
//@ need min(a0, a1, a2, a3, a4, a5) >= 0, min(b0, b1, b2, b3, b4, b5) >= 0
//@ let a_row = (d0 - 1) * a0 + (d1 - 1) * a1 + (d2 - 1) * a2 + (d3 - 1) * a3 + (d4 - 1) * a4
//@ let b_row = (d0 - 1) * b0 + (d1 - 1) * b1 + (d2 - 1) * b2 + (d3 - 1) * b3 + (d4 - 1) * b4
//@ items total
//@ reads a[a_row + (d5 - 1) * a5 + 1], b[b_row + (d5 - 1) * b5 + 1]
//@ writes y[total]
kernel void binary(global const uchar *a, global const uchar *b, global uchar *y, int total, int d1, int d2, int d3,
                   int d4, int d5, int a0, int a1, int a2, int a3, int a4, int a5, int b0, int b1, int b2, int b3,
                   int b4, int b5, OPERANDS) {
  const int i = get_global_id(0);
  if (i >= total) return;
  int r = i, from = 0, other = 0;
#define AXIS(d, s, t) from += r % d * s, other += r % d * t, r /= d;
  AXIS(d5, a5, b5) AXIS(d4, a4, b4) AXIS(d3, a3, b3) AXIS(d2, a2, b2) AXIS(d1, a1, b1)
  y[i] = combined(a[from + r * a0], b[other + r * b0], OPERANDS_ARGS);
}
#endif
#endif

// y (batches, M, N) = a (…, M, K) · b (…, K, N), ROWS rows of V columns an item. Batches are four axes, of which
// the first is what is left of them; a and b lie a0 to a3 and b0 to b3 elements apart along each.
#ifdef ROWS
//@ kernel product
//@ let d0 = batches / (d1 * d2 * d3)
//@ need min(M, N, K, d0, d1, d2, d3) > 0, d0 * d1 * d2 * d3 == batches, N % V == 0, (g0 + 1) * V <= INT_MAX
//@ need min(a0, a1, a2, a3) >= 0, min(b0, b1, b2, b3) >= 0, M + ROWS <= INT_MAX, (g1 + 1) * ROWS <= INT_MAX
//@ let a_last = (d0 - 1) * a0 + (d1 - 1) * a1 + (d2 - 1) * a2 + (d3 - 1) * a3
//@ let b_last = (d0 - 1) * b0 + (d1 - 1) * b1 + (d2 - 1) * b2 + (d3 - 1) * b3
//@ need b0 % V + b1 % V + b2 % V + b3 % V == 0 when ALIGNED
//@ items N / V, up(M, ROWS), batches
//@ reads a[a_last + M * K], b[b_last + K * N]
//@ writes y[batches * M * N]
kernel void product(global const uchar *a, global const uchar *b, global uchar *y, int batches, int M, int N, int K,
                    int d1, int d2, int d3, int a0, int a1, int a2, int a3, int b0, int b1, int b2, int b3, int flip,
                    int a_zero, int b_zero, int y_zero, int whole, int exponent) {
  const int column = get_global_id(0) * V, row = get_global_id(1) * ROWS, batch = get_global_id(2);
  if (column >= N || row >= M || batch >= batches) return;
  int r = batch, from = 0, other = 0;
#define BATCH(d, s, t) from += r % d * s, other += r % d * t, r /= d;
  BATCH(d3, a3, b3) BATCH(d2, a2, b2) BATCH(d1, a1, b1)
  a += from + r * a0, b += other + r * b0 + column;
  IV sums[ROWS];
  UNROLL for (int i = 0; i < ROWS; ++i) sums[i] = 0;
  for (int k = 0; k < K; ++k) {
    const IV line = TO_INT(FLIP(LDB(b, k * N), flip)) - b_zero;
    UNROLL for (int i = 0; i < ROWS; ++i)
      sums[i] += ((int)FLIP(a[min(row + i, M - 1) * K + k], flip) - a_zero) * line;
  }
  y += (size_t)batch * M * N + column;
  for (int i = 0; i < min(ROWS, M - row); ++i)
    STB(y, (size_t)(row + i) * N, byte_of(rescaled(sums[i], whole, exponent), y_zero, flip));
}
#endif
