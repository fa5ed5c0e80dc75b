// Index of the first (or last, -DLAST) largest value; SIGN -1 finds the smallest. NaN is the extreme.
//@ options HALF SIGN:number LAST
//@ kernel arg
//@ need min(outer, n, inner) > 0
//@ items outer * inner
//@ reads x[outer * n * inner]
//@ writes y[outer * inner]
kernel void arg(global const T *x, global long *y, int outer, int n, int inner) {
  const int i = get_global_id(0);
  if (i >= outer * inner) return;
  const int at = i / inner * n * inner + i % inner;
  float best = SIGN * LD(x, at);
  int where = 0;
  for (int k = 1; k < n; ++k) {
    const float v = SIGN * LD(x, at + k * inner);
#ifdef LAST
    if (v >= best || v != v) { best = v; where = k; }
#else
    if (v > best || (v != v && best == best)) { best = v; where = k; }
#endif
  }
  y[i] = where;
}
