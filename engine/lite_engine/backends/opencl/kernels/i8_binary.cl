// y = clamp(rint((a - a_zero)·a_scale OP (b - b_zero)·b_scale) / y_scale) + y_zero). With BY_PRODUCT
// `inverse` is a factor in place of 1 / y_scale; with FIXED y = clamp(((a·a_zero + b·b_zero + bias) >> shift) + y_zero).
//@ options V=1,4,8,16 ALIGNED OP(p,q) BY_PRODUCT FIXED
static inline UV combined(UV a, UV b, int flip, int a_zero, int b_zero, float a_scale, float b_scale, float y_scale,
                   float inverse, float y_zero, int bias, int shift, int nothing) {
#ifdef FIXED
  const IV sum = TO_INT(FLIP(a, flip)) * a_zero + TO_INT(FLIP(b, flip)) * b_zero + bias;
  const FV whole = TO_FLOAT(sum >> shift) + y_zero;
  return FLIP(TO_BYTE(AT_MOST(AT_LEAST(whole, 0.0f), 255.0f)), flip);
#else
  const FV p = TO_FLOAT(TO_INT(FLIP(a, flip)) - a_zero) * a_scale;
  const FV q = TO_FLOAT(TO_INT(FLIP(b, flip)) - b_zero) * b_scale;
  const float most = y_scale * 1048576.0f;
  const FV real = OP(ROUNDED(p), ROUNDED(q)), near = AT_MOST(AT_LEAST(real, -most), most);
#ifdef BY_PRODUCT
  const FV ratio = near * inverse;
#else
  const FV ratio = QUOTIENT(near, y_scale, inverse);
#endif
  return nearest_byte(ratio, y_zero, flip);
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
                        int BP, int flip, int a_zero, int b_zero, float a_scale, float b_scale, float y_scale,
                        float inverse, float y_zero, int bias, int shift, int nothing) {
  const int i = get_global_id(0) * V, row = get_global_id(1);
  if (i >= width || row >= rows) return;
  const UV done = combined(LDB(a, (size_t)row * AP + i), LDB(b, (size_t)row * BP + i), flip, a_zero, b_zero, a_scale,
                           b_scale, y_scale, inverse, y_zero, bias, shift, nothing);
  STB(y, (size_t)row * width + i, done);
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
                   int b4, int b5, int flip, int a_zero, int b_zero, float a_scale, float b_scale, float y_scale,
                   float inverse, float y_zero, int bias, int shift, int nothing) {
  const int i = get_global_id(0);
  if (i >= total) return;
  int r = i, from = 0, other = 0;
#define AXIS(d, s, t) from += r % d * s, other += r % d * t, r /= d;
  AXIS(d5, a5, b5) AXIS(d4, a4, b4) AXIS(d3, a3, b3) AXIS(d2, a2, b2) AXIS(d1, a1, b1)
  y[i] = combined(a[from + r * a0], b[other + r * b0], flip, a_zero, b_zero, a_scale, b_scale, y_scale, inverse,
                  y_zero, bias, shift, nothing);
}
#endif
