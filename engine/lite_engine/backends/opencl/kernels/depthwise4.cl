// One filter per channel, four channels a work-item. w (KH·KW, C).
kernel void depthwise4(global const T *x, global const T *w, global const float *bias,
                       global const T *residual, global T *y, int M, int H, int W, int C, int OH,
                       int OW, int O, int KH, int KW, int SH, int SW, int PT, int PL, int DH,
                       int DW) {
  const int c = get_global_id(0) * 4, m = get_global_id(1);
  if (c >= C || m >= M) return;
  const int y0 = m / OW % OH * SH - PT, x0 = m % OW * SW - PL, base = m / OW / OH * H;
  float4 s = vload4(0, bias + c);
  for (int ky = 0; ky < KH; ++ky) {
    const int yy = y0 + ky * DH;
    if (yy < 0 || yy >= H) continue;
    for (int kx = 0; kx < KW; ++kx) {
      const int xx = x0 + kx * DW;
      if (xx < 0 || xx >= W) continue;
      s = mad(LD4(x, ((size_t)(base + yy) * W + xx) * C + c), LD4(w, (ky * KW + kx) * C + c), s);
    }
  }
  const size_t to = (size_t)m * C + c;
#ifdef RESIDUAL
  s += LD4(residual, to);
#endif
  const float4 done = (float4)(ACT(s.x), ACT(s.y), ACT(s.z), ACT(s.w));
  ST4(y, to, done);
}
