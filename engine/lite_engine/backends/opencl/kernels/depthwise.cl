// One filter per channel, w (KH·KW, C). A work-item makes PY x PX neighbouring pixels times V channels.
// KH, KW, SW and DW are options, so that what a row of the window needs is loaded once; PY > 1 asks for
// a vertical stride and dilation of 1, and a row then serves all output rows that it is under. With -DTAIL
// C is no multiple of V: the last item makes the last V channels and stores those that nobody else does.
// Pixels of x and y lie XP and YP elements apart, the first x_at and y_at from the start.
#define SPAN ((PX - 1) * SW + (KW - 1) * DW + 1)
#define SUM(GOOD)                                                                 \
  for (int r = 0; r < KH + PY - 1; ++r) {                                         \
    const int yy = y0 + r * DH;                                                   \
    if (yy < 0 || yy >= H) continue;                                              \
    FV in[SPAN];                                                                  \
    UNROLL for (int i = 0; i < SPAN; ++i) {                                       \
      in[i] = 0;                                                                  \
      if (GOOD) in[i] = LDV(x, (yy * W + x0 + i) * XP);                           \
    }                                                                             \
    UNROLL for (int q = 0; q < PY; ++q) {                                         \
      const int ky = r - q;                                                       \
      if (ky < 0 || ky >= KH) continue;                                           \
      UNROLL for (int kx = 0; kx < KW; ++kx) {                                    \
        const FV f = LDV(w, (ky * KW + kx) * C + c);                              \
        UNROLL for (int p = 0; p < PX; ++p)                                       \
          sum[q][p] = FMA(in[p * SW + kx * DW], f, sum[q][p]);                    \
      }                                                                           \
    }                                                                             \
  }

kernel void depthwise(global const T *x, global const W_T *w, global const float *bias,
                      global const T *residual, global T *y, int images, int H, int W, int C, int OH,
                      int OW, int SH, int PT, int PL, int DH, int XP, int x_at, int YP, int y_at) {
  const int c0 = get_global_id(0) * V, spans = (OW + PX - 1) / PX, bands = (OH + PY - 1) / PY;
  const int band = get_global_id(1) / spans, ox = get_global_id(1) % spans * PX;
  if (c0 >= C || band >= images * bands) return;
#ifdef TAIL
  const int c = min(c0, C - V);
#else
  const int c = c0;
#endif
  const int oy = band % bands * PY, y0 = oy * SH - PT, x0 = ox * SW - PL;
  x += (size_t)(band / bands) * H * W * XP + x_at + c;
  FV sum[PY][PX];
  const FV start = LDFV(bias, c);
  UNROLL for (int q = 0; q < PY; ++q)
    UNROLL for (int p = 0; p < PX; ++p) sum[q][p] = start;
  if (x0 >= 0 && x0 + SPAN <= W) {
    SUM(1)
  } else {
    SUM(x0 + i >= 0 && x0 + i < W)
  }
  UNROLL for (int q = 0; q < PY; ++q) {
    const size_t pixel = ((size_t)(band / bands) * OH + oy + q) * OW + ox, to = pixel * YP + y_at + c;
    UNROLL for (int p = 0; p < PX; ++p) {
      FV v = sum[q][p];
      if (oy + q < OH && ox + p < OW) {
#ifdef RESIDUAL
        v += LDV(residual, (pixel + p) * C + c);
#endif
        const FV done = ACT(v);
#ifdef TAIL
        if (c < c0) {
          float u[V];
          STFV(u, 0, done);
          for (int e = c0 - c; e < V; ++e) ST(y, to + p * YP + e, u[e]);
          continue;
        }
#endif
        STV(y, to + p * YP, done);
      }
    }
  }
}
