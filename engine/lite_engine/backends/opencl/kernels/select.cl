// Elementwise on any type, with broadcasting: element strides over up to six axes of y, 0 where an operand repeats.
//@ options E:type TI:type OP(p,q)

// y = condition ? a : b; E is an integer of an element's size.
//@ kernel where
//@ let d0 = n / (d1 * d2 * d3 * d4 * d5)
//@ need min(d0, d1, d2, d3, d4, d5) > 0, d0 * d1 * d2 * d3 * d4 * d5 == n
//@ need min(c0, c1, c2, c3, c4, c5) >= 0, min(a0, a1, a2, a3, a4, a5) >= 0, min(b0, b1, b2, b3, b4, b5) >= 0
//@ let c_row = (d0 - 1) * c0 + (d1 - 1) * c1 + (d2 - 1) * c2 + (d3 - 1) * c3 + (d4 - 1) * c4
//@ let a_row = (d0 - 1) * a0 + (d1 - 1) * a1 + (d2 - 1) * a2 + (d3 - 1) * a3 + (d4 - 1) * a4
//@ let b_row = (d0 - 1) * b0 + (d1 - 1) * b1 + (d2 - 1) * b2 + (d3 - 1) * b3 + (d4 - 1) * b4
//@ items n
//@ reads c[c_row + (d5 - 1) * c5 + 1], a[a_row + (d5 - 1) * a5 + 1], b[b_row + (d5 - 1) * b5 + 1]
//@ writes y[n]
#ifdef E
kernel void where(global const uchar *c, global const E *a, global const E *b, global E *y, int n, int d1, int d2,
                  int d3, int d4, int d5, int c0, int c1, int c2, int c3, int c4, int c5, int a0, int a1, int a2,
                  int a3, int a4, int a5, int b0, int b1, int b2, int b3, int b4, int b5) {
  const int i = get_global_id(0);
  if (i >= n) return;
  SIX_PLACES(i);
  if (c[AT_SIX(c)])
    y[i] = a[AT_SIX(a)];
  else
    y[i] = b[AT_SIX(b)];
}
#endif

// y = OP(a, b), a truth, of integers or truths of type TI.
//@ kernel judge
//@ let d0 = n / (d1 * d2 * d3 * d4 * d5)
//@ need min(d0, d1, d2, d3, d4, d5) > 0, d0 * d1 * d2 * d3 * d4 * d5 == n
//@ need min(a0, a1, a2, a3, a4, a5) >= 0, min(b0, b1, b2, b3, b4, b5) >= 0
//@ let a_row = (d0 - 1) * a0 + (d1 - 1) * a1 + (d2 - 1) * a2 + (d3 - 1) * a3 + (d4 - 1) * a4
//@ let b_row = (d0 - 1) * b0 + (d1 - 1) * b1 + (d2 - 1) * b2 + (d3 - 1) * b3 + (d4 - 1) * b4
//@ items n
//@ reads a[a_row + (d5 - 1) * a5 + 1], b[b_row + (d5 - 1) * b5 + 1]
//@ writes y[n]
#ifdef TI
kernel void judge(global const TI *a, global const TI *b, global uchar *y, int n, int d1, int d2, int d3, int d4,
                  int d5, int a0, int a1, int a2, int a3, int a4, int a5, int b0, int b1, int b2, int b3, int b4,
                  int b5) {
  const int i = get_global_id(0);
  if (i >= n) return;
  SIX_PLACES(i);
  const TI p = a[AT_SIX(a)];
  const TI q = b[AT_SIX(b)];
  y[i] = OP(p, q) ? 1 : 0;
}
#endif
