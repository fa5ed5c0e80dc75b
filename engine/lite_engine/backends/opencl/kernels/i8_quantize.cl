// Between real numbers and integers: real = (q - zero)·scale, q = clamp(rint(real / scale) + zero), from `low`
// to `high`. Element i has parameters i / inner % entries.
//@ options HALF TI:type TO:type
//@ kernel quantize
//@ need min(entries, inner) > 0
//@ items total
//@ reads x[total], scale[entries], inverse[entries], zero[entries]
//@ writes y[total]
kernel void quantize(global const T *x, global const float *scale, global const float *inverse,
                     global const int *zero, global TO *y, int total, int entries, int inner, float low,
                     float high) {
  const int i = get_global_id(0);
  if (i >= total) return;
  const int at = i / inner % entries;
  const float s = scale[at], most = s * 1048576.0f, v = clamp(LD(x, i), -most, most);
  const float q = rint(QUOTIENT(v, s, inverse[at])) + (float)zero[at];
  y[i] = PASTE(convert_, TO)(clamp(q, low, high));
}

//@ kernel dequantize
//@ need min(entries, inner) > 0
//@ items total
//@ reads x[total], scale[entries], zero[entries]
//@ writes y[total]
kernel void dequantize(global const TI *x, global const float *scale, global const int *zero,
                       global float *y, int total, int entries, int inner) {
  const int i = get_global_id(0);
  if (i >= total) return;
  const int at = i / inner % entries;
  y[i] = (float)((int)x[i] - zero[at]) * scale[at];
}
