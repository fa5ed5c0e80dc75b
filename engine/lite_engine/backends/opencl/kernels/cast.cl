// y[i] = (TO)x[i]; half through vload_half and vstore_half.
//@ options TI:type TO:type FROM_HALF TO_HALF FINITE TO_BOOL WHOLE
//@ kernel cast
//@ need TI == 2 when FROM_HALF
//@ need TO == 2 when TO_HALF
//@ need TO == 2 when FINITE
//@ items n
//@ reads x[n]
//@ writes y[n]
kernel void cast(global const TI *x, global TO *y, int n) {
  const int i = get_global_id(0);
  if (i >= n) return;
#ifdef FROM_HALF
  const float v = vload_half(i, x);
#else
  const TI v = x[i];
#endif
#if defined(FINITE)  // what is too large for a half becomes the largest one
  const float w = (float)v;
  vstore_half(isfinite(w) ? clamp(w, -65504.0f, 65504.0f) : w, i, y);
#elif defined(TO_HALF)
  vstore_half((float)v, i, y);
#elif defined(TO_BOOL)
  y[i] = v != 0;
#elif defined(WHOLE)  // numbers that a small type cannot hold wrap around on every device
  y[i] = (TO)(long)v;
#else
  y[i] = (TO)v;
#endif
}
