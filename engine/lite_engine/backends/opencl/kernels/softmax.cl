// Softmax over the middle axis of (outer, n, inner); -DLOGARITHM its logarithm.
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
