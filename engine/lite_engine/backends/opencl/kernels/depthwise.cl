// One filter per channel, w (KH·KW, C). A work-item makes PX neighbouring pixels of an output row times V
// channels. KH, KW, SW and DW are options, so that what a row of the window needs is loaded once.
#define SPAN ((PX - 1) * SW + (KW - 1) * DW + 1)

kernel void depthwise(global const T *x, global const W_T *w, global const float *bias,
                      global const T *residual, global T *y, int rows, int H, int W, int C, int OH,
                      int OW, int SH, int PT, int PL, int DH) {
  const int c = get_global_id(0) * V, spans = (OW + PX - 1) / PX;
  const int row = get_global_id(1) / spans, ox = get_global_id(1) % spans * PX;
  if (c >= C || row >= rows) return;
  const int y0 = row % OH * SH - PT, x0 = ox * SW - PL;
  x += (size_t)(row / OH) * H * W * C + c;
  FV sum[PX];
  const FV start = LDFV(bias, c);
  UNROLL for (int p = 0; p < PX; ++p) sum[p] = start;
  if (x0 >= 0 && x0 + SPAN <= W) {
    for (int ky = 0; ky < KH; ++ky) {
      const int yy = y0 + ky * DH;
      if (yy < 0 || yy >= H) continue;
      FV in[SPAN];
      UNROLL for (int i = 0; i < SPAN; ++i) in[i] = LDV(x, (yy * W + x0 + i) * C);
      UNROLL for (int kx = 0; kx < KW; ++kx) {
        const FV f = LDV(w, (ky * KW + kx) * C + c);
        UNROLL for (int p = 0; p < PX; ++p) sum[p] = FMA(in[p * SW + kx * DW], f, sum[p]);
      }
    }
  } else {
    for (int ky = 0; ky < KH; ++ky) {
      const int yy = y0 + ky * DH;
      if (yy < 0 || yy >= H) continue;
      FV in[SPAN];
      UNROLL for (int i = 0; i < SPAN; ++i) {
        in[i] = 0;
        if (x0 + i >= 0 && x0 + i < W) in[i] = LDV(x, (yy * W + x0 + i) * C);
      }
      UNROLL for (int kx = 0; kx < KW; ++kx) {
        const FV f = LDV(w, (ky * KW + kx) * C + c);
        UNROLL for (int p = 0; p < PX; ++p) sum[p] = FMA(in[p * SW + kx * DW], f, sum[p]);
      }
    }
  }
  const size_t to = ((size_t)row * OW + ox) * C + c;
  UNROLL for (int p = 0; p < PX; ++p) {
    FV v = sum[p];
    if (ox + p < OW) {
#ifdef RESIDUAL
      v += LDV(residual, to + p * C);
#endif
      const FV done = ACT(v);
      STV(y, to + p * C, done);
    }
  }
}
