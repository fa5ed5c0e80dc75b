// (x − mean) / sqrt(var + eps) over the middle axis of (outer, n, inner), then scale and offset: per
// position of the axis (-DPER_N), or per inner index.
kernel void normalise(global const T *x, global const float *scale, global const float *offset,
                      global T *y, int outer, int n, int inner, float epsilon) {
  const int i = get_global_id(0);
  if (i >= outer * inner) return;
  const int at = i / inner * n * inner + i % inner;
  float mean = 0, square = 0;
  for (int k = 0; k < n; ++k) mean += LD(x, at + k * inner);
  mean /= n;
  for (int k = 0; k < n; ++k) {
    const float d = LD(x, at + k * inner) - mean;
    square += d * d;
  }
  const float factor = rsqrt(square / n + epsilon);
  for (int k = 0; k < n; ++k) {
#ifdef PER_N
    const int c = k;
#else
    const int c = i % inner;
#endif
    const float v = (LD(x, at + k * inner) - mean) * factor * scale[c] + offset[c];
    ST(y, at + k * inner, ACT(v));
  }
}

// y = ACT(x · scale[c] + offset[c]), channels innermost.
kernel void affine(global const T *x, global const float *scale, global const float *offset,
                   global T *y, int n, int channels) {
  const int i = get_global_id(0);
  if (i >= n) return;
  const int c = i % channels;
  const float v = LD(x, i) * scale[c] + offset[c];
  ST(y, i, ACT(v));
}
