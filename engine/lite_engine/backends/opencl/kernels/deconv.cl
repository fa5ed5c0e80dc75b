// Transposed convolution, gathered: each output looks for the inputs that reach it.
// w (KH·KW·C/G, O).
//@ options HALF ACT(x) ACT_A:number ACT_B:number
//@ kernel deconv
//@ need min(OH, OW, G, O, SH, SW) > 0, O % G == 0, min(H, W, C, KH, KW, DH, DW) >= 0
//@ need OH + KH * DH + max(PT, -PT) <= INT_MAX, OW + KW * DW + max(PL, -PL) <= INT_MAX
//@ items O, M
//@ reads x[up(M, OH * OW) * H * W * C], w[KH * KW * (C / G) * O], bias[O]
//@ writes y[M * O]
kernel void deconv(global const T *x, global const T *w, global const float *bias, global T *y,
                   int M, int H, int W, int C, int OH, int OW, int O, int KH, int KW, int SH, int SW,
                   int PT, int PL, int DH, int DW, int G) {
  const int o = get_global_id(0), m = get_global_id(1);
  if (o >= O || m >= M) return;
  const int oy = m / OW % OH + PT, ox = m % OW + PL, base = m / OW / OH * H;
  const int cg = C / G, first = o / (O / G) * cg;
  float s = bias[o];
  for (int ky = 0; ky < KH; ++ky) {
    const int dy = oy - ky * DH;
    if (dy < 0 || dy % SH || dy / SH >= H) continue;
    for (int kx = 0; kx < KW; ++kx) {
      const int dx = ox - kx * DW;
      if (dx < 0 || dx % SW || dx / SW >= W) continue;
      for (int c = 0; c < cg; ++c)
        s += LD(x, ((base + dy / SH) * W + dx / SW) * C + first + c) *
             LD(w, ((ky * KW + kx) * cg + c) * O + o);
    }
  }
  ST(y, m * O + o, ACT(s));
}
