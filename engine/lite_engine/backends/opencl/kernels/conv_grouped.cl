// One output value a work-item: grouped convolutions and whatever nothing faster takes.
// w (KH·KW·C/G, O).
//@ options HALF RESIDUAL ACT(x) ACT_A:number ACT_B:number
//@ kernel conv_grouped
//@ need min(OH, OW, G, O) > 0, O % G == 0, min(H, W, C, KH, KW, SH, SW, DH, DW) >= 0
//@ need OH * SH + KH * DH + max(PT, -PT) <= INT_MAX, OW * SW + KW * DW + max(PL, -PL) <= INT_MAX
//@ items O, M
//@ reads x[up(M, OH * OW) * H * W * C], w[KH * KW * (C / G) * O], bias[O]
//@ reads residual[M * O] when RESIDUAL
//@ writes y[M * O]
kernel void conv_grouped(global const T *x, global const T *w, global const float *bias,
                         global const T *residual, global T *y, int M, int H, int W, int C, int OH,
                         int OW, int O, int KH, int KW, int SH, int SW, int PT, int PL, int DH,
                         int DW, int G) {
  const int o = get_global_id(0), m = get_global_id(1);
  if (o >= O || m >= M) return;
  const int y0 = m / OW % OH * SH - PT, x0 = m % OW * SW - PL, base = m / OW / OH * H;
  const int cg = C / G, first = o / (O / G) * cg;
  float s = bias[o];
  for (int ky = 0; ky < KH; ++ky) {
    const int yy = y0 + ky * DH;
    if (yy < 0 || yy >= H) continue;
    for (int kx = 0; kx < KW; ++kx) {
      const int xx = x0 + kx * DW;
      if (xx < 0 || xx >= W) continue;
      for (int c = 0; c < cg; ++c)
        s += LD(x, ((base + yy) * W + xx) * C + first + c) *
             LD(w, ((ky * KW + kx) * cg + c) * O + o);
    }
  }
#ifdef RESIDUAL
  s += LD(residual, m * O + o);
#endif
  ST(y, m * O + o, ACT(s));
}
