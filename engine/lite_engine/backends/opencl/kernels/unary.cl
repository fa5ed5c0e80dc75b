// y[i] = ACT(x[i]), V of them an item
//@ options HALF HALF_TYPES ALIGNED V=1,2,4,8,16 ACT(x) ACT_A:number ACT_B:number
//@ kernel unary
//@ items up(n, V)
//@ need (g0 + 1) * V <= INT_MAX
//@ reads x[n]
//@ writes y[n]
kernel void unary(global const T *x, global T *y, int n) {
  const int i = get_global_id(0) * V;
  if (i + V <= n) {
    const FV v = LDV(x, i);
    const FV done = ACT(v);
    STV(y, i, done);
  } else {
    for (int j = i; j < n; ++j) {
      const float v = LD(x, j);
      const float done = ACT(v);
      ST(y, j, done);
    }
  }
}
