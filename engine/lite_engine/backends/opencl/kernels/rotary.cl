// y = x c + t s: pairs (a, b) of a row of D numbers turned by their angles, where t has (-b, a). A pair's
// numbers lie half a row apart, or side by side (-DINTERLEAVED). Rows are (d0, d1, d2); c and s have the
// strides c0, c1, c2 over them. A work-item makes a pair.
//@ options HALF HALF_TYPES INTERLEAVED
#ifdef INTERLEAVED
#define FIRST(p) (2 * (p))
#define APART 1
#else
#define FIRST(p) (p)
#define APART (D / 2)
#endif

//@ kernel turn_pairs
//@ let d0 = 2 * n / (D * d1 * d2)
//@ let last = (d0 - 1) * c0 + (d1 - 1) * c1 + (d2 - 1) * c2
//@ need min(n, d1, d2, D) > 0, D % 2 == 0, d0 * d1 * d2 * D == 2 * n, min(c0, c1, c2) >= 0, 2 * n <= INT_MAX
//@ items n
//@ reads x[2 * n], c[last + D], s[last + D]
//@ writes y[2 * n]
kernel void turn_pairs(global const T *x, global const T *c, global const T *s, global T *y, int n,
                       int d1, int d2, int D, int c0, int c1, int c2) {
  const int i = get_global_id(0);
  if (i >= n) return;
  const int row = i / (D / 2), first = FIRST(i % (D / 2));
  const int at = row * D + first;
  const int angle = row / d2 / d1 * c0 + row / d2 % d1 * c1 + row % d2 * c2 + first;
  const float a = LD(x, at), b = LD(x, at + APART);
  const float real = a * LD(c, angle) - b * LD(s, angle);
  const float imaginary = b * LD(c, angle + APART) + a * LD(s, angle + APART);
  ST(y, at, real);
  ST(y, at + APART, imaginary);
}
