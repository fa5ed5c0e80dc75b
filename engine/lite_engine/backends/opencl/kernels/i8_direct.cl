// One byte of y a work-item: grouped and transposed convolutions. w (KH·KW·C/G, O) less its zero point.
//@ kernel grouped
//@ need min(OH, OW, G, O) > 0, O % G == 0, min(H, W, C, KH, KW, SH, SW, DH, DW) >= 0
//@ need OH * SH + KH * DH + max(PT, -PT) <= INT_MAX, OW * SW + KW * DW + max(PL, -PL) <= INT_MAX
//@ items O, M
//@ reads x[up(M, OH * OW) * H * W * C], w[KH * KW * (C / G) * O], bias[O], scale[O]
//@ reads residual[M * O] when adding
//@ writes y[M * O]
kernel void grouped(global const uchar *x, global const short *w, global const int *bias, global const float *scale,
                    global const uchar *residual, global uchar *y, int M, int H, int W, int C, int OH, int OW, int O,
                    int KH, int KW, int SH, int SW, int PT, int PL, int DH, int DW, int G, int x_flip, int x_zero,
                    REQUANTIZE) {
  const int o = get_global_id(0), m = get_global_id(1);
  if (o >= O || m >= M) return;
  const int y0 = m / OW % OH * SH - PT, x0 = m % OW * SW - PL, base = m / OW / OH * H;
  const int cg = C / G, first = o / (O / G) * cg;
  int s = bias[o];
  for (int ky = 0; ky < KH; ++ky) {
    const int yy = y0 + ky * DH;
    if (yy < 0 || yy >= H) continue;
    for (int kx = 0; kx < KW; ++kx) {
      const int xx = x0 + kx * DW;
      if (xx < 0 || xx >= W) continue;
      for (int c = 0; c < cg; ++c)
        s += ((int)FLIP(x[(size_t)((base + yy) * W + xx) * C + first + c], x_flip) - x_zero) *
             (int)w[((ky * KW + kx) * cg + c) * O + o];
    }
  }
  const size_t at = (size_t)m * O + o;
  const uchar old = adding ? residual[at] : (uchar)0;
  y[at] = requantized(s, scale[o], old, REQUANTIZE_ARGS);
}

// Each output looks for the inputs that reach it.
//@ kernel transposed
//@ need min(OH, OW, G, O, SH, SW) > 0, O % G == 0, min(H, W, C, KH, KW, DH, DW) >= 0
//@ need OH + KH * DH + max(PT, -PT) <= INT_MAX, OW + KW * DW + max(PL, -PL) <= INT_MAX
//@ items O, M
//@ reads x[up(M, OH * OW) * H * W * C], w[KH * KW * (C / G) * O], bias[O], scale[O]
//@ writes y[M * O]
kernel void transposed(global const uchar *x, global const short *w, global const int *bias, global const float *scale,
                       global uchar *y, int M, int H, int W, int C, int OH, int OW, int O, int KH, int KW, int SH,
                       int SW, int PT, int PL, int DH, int DW, int G, int x_flip, int x_zero, REQUANTIZE) {
  const int o = get_global_id(0), m = get_global_id(1);
  if (o >= O || m >= M) return;
  const int oy = m / OW % OH + PT, ox = m % OW + PL, base = m / OW / OH * H;
  const int cg = C / G, first = o / (O / G) * cg;
  int s = bias[o];
  for (int ky = 0; ky < KH; ++ky) {
    const int dy = oy - ky * DH;
    if (dy < 0 || dy % SH || dy / SH >= H) continue;
    for (int kx = 0; kx < KW; ++kx) {
      const int dx = ox - kx * DW;
      if (dx < 0 || dx % SW || dx / SW >= W) continue;
      for (int c = 0; c < cg; ++c)
        s += ((int)FLIP(x[(size_t)((base + dy / SH) * W + dx / SW) * C + first + c], x_flip) - x_zero) *
             (int)w[((ky * KW + kx) * cg + c) * O + o];
    }
  }
  y[(size_t)m * O + o] = requantized(s, scale[o], 0, REQUANTIZE_ARGS);
}
