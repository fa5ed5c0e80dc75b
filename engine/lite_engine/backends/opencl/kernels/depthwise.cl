// One filter per channel, w (KH·KW, C).
kernel void depthwise(global const T *x, global const W_T *w, global const float *bias,
                           global const T *residual, global T *y, int M, int H, int W, int C, int OH,
                           int OW, int O, int KH, int KW, int SH, int SW, int PT, int PL, int DH,
                           int DW) {
  const int c = get_global_id(0), m = get_global_id(1);
  if (c >= C || m >= M) return;
  const int y0 = m / OW % OH * SH - PT, x0 = m % OW * SW - PL, base = m / OW / OH * H;
  float s = bias[c];
  for (int ky = 0; ky < KH; ++ky) {
    const int yy = y0 + ky * DH;
    if (yy < 0 || yy >= H) continue;
    for (int kx = 0; kx < KW; ++kx) {
      const int xx = x0 + kx * DW;
      if (xx < 0 || xx >= W) continue;
      s += LD(x, ((base + yy) * W + xx) * C + c) * LDW(w, (ky * KW + kx) * C + c);
    }
  }
#ifdef RESIDUAL
  s += LD(residual, m * C + c);
#endif
  ST(y, m * C + c, ACT(s));
}
