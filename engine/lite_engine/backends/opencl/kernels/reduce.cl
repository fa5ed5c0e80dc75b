// x (outer, n, inner) → y (outer, inner). STEP folds a value into `s`, DONE finishes it.
kernel void reduce(global const T *x, global T *y, int outer, int n, int inner) {
  const int i = get_global_id(0);
  if (i >= outer * inner) return;
  const int at = i / inner * n * inner + i % inner;
  float s = START;
  for (int k = 0; k < n; ++k) {
    const float v = LD(x, at + k * inner);
    s = STEP(s, v);
  }
  s = DONE(s, (float)n);
  ST(y, i, s);
}

kernel void softmax(global const T *x, global T *y, int outer, int n, int inner) {
  const int i = get_global_id(0);
  if (i >= outer * inner) return;
  const int at = i / inner * n * inner + i % inner;
  float top = -INFINITY, sum = 0;
  for (int k = 0; k < n; ++k) top = fmax(top, LD(x, at + k * inner));
  for (int k = 0; k < n; ++k) sum += exp(LD(x, at + k * inner) - top);
  for (int k = 0; k < n; ++k) {
    const float v = LD(x, at + k * inner) - top;
#ifdef LOGARITHM
    ST(y, at + k * inner, v - log(sum));
#else
    ST(y, at + k * inner, exp(v) / sum);
#endif
  }
}

// A row a work-group of 128, for devices where one item a row would be slow. inner is 1.
kernel __attribute__((reqd_work_group_size(128, 1, 1)))
void softmax_row(global const T *x, global T *y, int outer, int n, int inner) {
  local float part[128];
  const int id = get_local_id(0), at = get_group_id(0) * n;
  float top = -INFINITY, sum = 0;
  for (int k = id; k < n; k += 128) top = fmax(top, LD(x, at + k));
  part[id] = top;
  for (int half_ = 64; half_ > 0; half_ /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (id < half_) part[id] = fmax(part[id], part[id + half_]);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  top = part[0];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int k = id; k < n; k += 128) sum += exp(LD(x, at + k) - top);
  part[id] = sum;
  for (int half_ = 64; half_ > 0; half_ /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (id < half_) part[id] += part[id + half_];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  sum = part[0];
  for (int k = id; k < n; k += 128) {
    const float v = LD(x, at + k) - top;
#ifdef LOGARITHM
    ST(y, at + k, v - log(sum));
#else
    ST(y, at + k, exp(v) / sum);
#endif
  }
}

// Index of the first (or last, -DLAST) largest value; SIGN -1 finds the smallest.
kernel void arg(global const T *x, global long *y, int outer, int n, int inner) {
  const int i = get_global_id(0);
  if (i >= outer * inner) return;
  const int at = i / inner * n * inner + i % inner;
  float best = SIGN * LD(x, at);
  int where = 0;
  for (int k = 1; k < n; ++k) {
    const float v = SIGN * LD(x, at + k * inner);
#ifdef LAST
    if (v >= best) { best = v; where = k; }
#else
    if (v > best) { best = v; where = k; }
#endif
  }
  y[i] = where;
}

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
