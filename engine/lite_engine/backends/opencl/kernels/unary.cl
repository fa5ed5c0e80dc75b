// y[i] = ACT(x[i])
kernel void unary(global const T *x, global T *y, int n) {
  const int i = get_global_id(0);
  if (i < n) {
    const float v = LD(x, i);
    ST(y, i, ACT(v));
  }
}
