// (x − mean) / sqrt(var + eps) over the middle axis of (outer, n, inner), then scale and offset: per
// position of the axis (-DPER_N), or per inner index. V inner indices an item.
//@ options HALF HALF_TYPES ALIGNED V=1,2,4,8,16 ITEMS=1..64 HOLD=0..8 PER_N ACT(x) ACT_A:number ACT_B:number
//@ kernel normalise
//@ need min(outer, n, inner) > 0, inner % V == 0, (g0 + 1) * V <= INT_MAX
//@ items outer * inner / V
//@ reads x[outer * n * inner]
//@ reads scale[n], offset[n] when PER_N
//@ reads scale[inner], offset[inner] when PER_N == 0
//@ writes y[outer * n * inner]
kernel void normalise(global const T *x, global const float *scale, global const float *offset,
                      global T *y, int outer, int n, int inner, float epsilon) {
  const int i = get_global_id(0) * V;
  if (i >= outer * inner) return;
  const int at = i / inner * n * inner + i % inner;
  FV mean = 0, square = 0;
  for (int k = 0; k < n; ++k) mean += LDV(x, at + k * inner);
  mean /= (float)n;
  for (int k = 0; k < n; ++k) {
    const FV d = LDV(x, at + k * inner) - mean;
    square += d * d;
  }
  const FV factor = rsqrt(square / (float)n + epsilon);
  for (int k = 0; k < n; ++k) {
#ifdef PER_N
    const FV s = scale[k], t = offset[k];
#else
    const FV s = LDFV(scale, i % inner), t = LDFV(offset, i % inner);
#endif
    const FV v = (LDV(x, at + k * inner) - mean) * factor * s + t;
    const FV done = ACT(v);
    STV(y, at + k * inner, done);
  }
}

// The same of rows (inner is 1), each by a group of ITEMS work-items.
#ifdef ITEMS
#define ADD(s, t) ((s) + (t))
//@ kernel normalise_row
//@ let rows = g0 / ITEMS
//@ group ITEMS
//@ items rows * ITEMS
//@ need n >= 0, n + 16 * ITEMS <= INT_MAX
//@ need n % V == 0 when ALIGNED
//@ local (ITEMS + 8) * 4
//@ reads x[rows * n]
//@ reads scale[n], offset[n]
//@ writes y[rows * n]
kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void normalise_row(global const T *x, global const float *scale, global const float *offset,
                   global T *y, int n, float epsilon) {
  local float part[PARTS];
  const int id = get_local_id(0), whole = n / V * V;
  x += (size_t)get_group_id(0) * n;
  y += (size_t)get_group_id(0) * n;
  FV many = 0;
  float sum = 0, square = 0;
  HELD(x);
  EACH_HELD(many += held);
  FOLD(many, sum, ADD);
  for (int k = whole + id; k < n; k += ITEMS) sum += LD(x, k);
  TOGETHER(part, id, sum, ADD);
  const float mean = sum / (float)n;
  many = 0;
  EACH_HELD(many += (held - mean) * (held - mean));
  FOLD(many, square, ADD);
  for (int k = whole + id; k < n; k += ITEMS) square += (LD(x, k) - mean) * (LD(x, k) - mean);
  TOGETHER(part, id, square, ADD);
  const float factor = rsqrt(square / (float)n + epsilon);
  EACH_HELD({
    const FV v = (held - mean) * factor * LDFV(scale, k) + LDFV(offset, k);
    const FV done = ACT(v);
    STV(y, k, done);
  });
  for (int k = whole + id; k < n; k += ITEMS) {
    const float v = (LD(x, k) - mean) * factor * scale[k] + offset[k];
    const float done = ACT(v);
    ST(y, k, done);
  }
}
#endif

// y = ACT(x · scale[c] + offset[c]), channels innermost, V of them an item.
//@ kernel affine
//@ need min(n, channels) > 0, channels % V == 0, n % V == 0, (g0 + 1) * V <= INT_MAX
//@ items n / V
//@ reads x[n], scale[channels], offset[channels]
//@ writes y[n]
kernel void affine(global const T *x, global const float *scale, global const float *offset,
                   global T *y, int n, int channels) {
  const int i = get_global_id(0) * V;
  if (i >= n) return;
  const int c = i % channels;
  const FV v = LDV(x, i) * LDFV(scale, c) + LDFV(offset, c);
  const FV done = ACT(v);
  STV(y, i, done);
}
