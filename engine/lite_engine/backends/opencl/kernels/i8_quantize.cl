// Between real numbers and integers: real = (q - zero)·scale, q = clamp(rint(real / scale) + zero), from `low`
// to `high`; with BY_PRODUCT q = real·inverse. V numbers an item have the same parameters: element i has number i / inner % entries.
//@ options HALF TI:type TO:type BY_PRODUCT V=1,4,8,16
#if V == 1
#define OF(type, v) PASTE(convert_, type)(v)
#define LOAD(p, i) (p)[i]
#define STORE(p, i, v) (p)[i] = (v)
#else
#define OF(type, v) PASTE(convert_, PASTE(type, V))(v)
#define LOAD(p, i) PASTE(vload, V)(0, (p) + (i))
#define STORE(p, i, v) STORE_AT(PASTE(TO, V), (p) + (i), v)
#endif

//@ kernel quantize
//@ need min(entries, inner) > 0
//@ need total % V == 0
//@ items total / V
//@ reads x[total], scale[entries], inverse[entries], zero[entries]
//@ writes y[total]
kernel void quantize(global const T *x, global const float *scale, global const float *inverse,
                     global const int *zero, global TO *y, int total, int entries, int inner, float low,
                     float high) {
  const int i = get_global_id(0) * V;
  if (i >= total) return;
  const int at = entries == 1 ? 0 : i / inner % entries;
  const float s = scale[at], most = s * 1048576.0f;
  const FV v = LDV(x, i), near = AT_MOST(AT_LEAST(v, -most), most);
#ifdef BY_PRODUCT
  const FV q = rint(near * inverse[at]) + (float)zero[at];
#else
  const FV q = rint(QUOTIENT(near, s, inverse[at])) + (float)zero[at];
#endif
  const FV inside = AT_MOST(AT_LEAST(q, low), high);
  STORE(y, i, OF(TO, OF(int, inside)));
}

//@ kernel dequantize
//@ need min(entries, inner) > 0
//@ need total % V == 0
//@ items total / V
//@ reads x[total], scale[entries], zero[entries]
//@ writes y[total]
kernel void dequantize(global const TI *x, global const float *scale, global const int *zero,
                       global float *y, int total, int entries, int inner) {
  const int i = get_global_id(0) * V;
  if (i >= total) return;
  const int at = entries == 1 ? 0 : i / inner % entries;
  const IV q = OF(int, LOAD(x, i)) - zero[at];
  STFV(y, i, TO_FLOAT(q) * scale[at]);
}
