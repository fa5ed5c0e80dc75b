// One filter per channel, w (KH·KW, C) less its zero point. A work-item makes PY x PX neighbouring pixels times V
// channels, with rows that serve all output rows as in depthwise.cl. The sums of products of bytes stay below 2^24, where float arithmetic is exact. With -DTAIL C is no multiple of V: the last
// item makes the last V channels and stores those that nobody else does. Pixels of x and y lie XP and YP elements
// apart, the first x_at and y_at from the start.
//@ options V=1,4,8,16 ALIGNED FAST_FMA TAIL PX=1..16 PY=1..16 KH=1..4096 KW=1..4096 SW=1..4096 DW=1..4096
#define SPAN ((PX - 1) * SW + (KW - 1) * DW + 1)
#define SUM(GOOD)                                                                  \
  for (int r = 0; r < KH + PY - 1; ++r) {                                          \
    const int yy = y0 + r * DH;                                                    \
    if (yy < 0 || yy >= H) continue;                                               \
    FV in[SPAN];                                                                   \
    UNROLL for (int i = 0; i < SPAN; ++i) {                                        \
      in[i] = 0;                                                                   \
      if (GOOD) in[i] = TO_FLOAT(TO_INT(FLIP(LDB(x, (yy * W + x0 + i) * XP), x_flip)) - x_zero); \
    }                                                                              \
    UNROLL for (int q = 0; q < PY; ++q) {                                          \
      const int ky = r - q;                                                        \
      if (ky < 0 || ky >= KH) continue;                                            \
      UNROLL for (int kx = 0; kx < KW; ++kx) {                                     \
        const FV f = TO_FLOAT(LDSV(w, (ky * KW + kx) * C + c));                    \
        UNROLL for (int p = 0; p < PX; ++p)                                        \
          sum[q][p] = FMA(in[p * SW + kx * DW], f, sum[q][p]);                     \
      }                                                                            \
    }                                                                              \
  }

//@ kernel depthwise
//@ let bands = up(OH, PY)
//@ let spans = up(OW, PX)
//@ let span = (PX - 1) * SW + (KW - 1) * DW + 1
//@ items up(C, V), images * bands * spans
//@ need min(C, OH, OW) > 0, min(H, W, SH, DH) >= 0, span * V <= 32768, (g0 + 1) * V <= INT_MAX
//@ need C % V == 0 when TAIL == 0
//@ need C >= V when TAIL
//@ need C % V + XP % V + x_at % V + YP % V + y_at % V == 0 when ALIGNED
//@ need (OH + PY) * SH + (KH + PY) * DH + max(PT, -PT) <= INT_MAX, (OW + PX) * SW + span + max(PL, -PL) <= INT_MAX
//@ reads x[x_at, images * H * W, XP, C], w[KH * KW * C], bias[C], scale[C]
//@ reads residual[images * OH * OW * C] when adding
//@ writes y[y_at, images * OH * OW, YP, C]
kernel void depthwise(global const uchar *x, global const short *w, global const int *bias, global const float *scale,
                      global const uchar *residual, global uchar *y, int images, int H, int W, int C, int OH, int OW,
                      int SH, int PT, int PL, int DH, int XP, int x_at, int YP, int y_at, int x_flip, int x_zero,
                      REQUANTIZE) {
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
  UNROLL for (int q = 0; q < PY; ++q)
    UNROLL for (int p = 0; p < PX; ++p) sum[q][p] = 0;
  if (x0 >= 0 && x0 + SPAN <= W) {
    SUM(1)
  } else {
    SUM(x0 + i >= 0 && x0 + i < W)
  }
  const IV more = LDIV(bias, c);
  const FV factor = LDFV(scale, c);
  UNROLL for (int q = 0; q < PY; ++q) {
    const size_t pixel = ((size_t)(band / bands) * OH + oy + q) * OW + ox, to = pixel * YP + y_at + c;
    UNROLL for (int p = 0; p < PX; ++p) {
      if (oy + q >= OH || ox + p >= OW) continue;
      UV old = 0;
      if (adding) old = LDB(residual, (pixel + p) * C + c);
      const UV done = requantized(TO_INT(sum[q][p]) + more, factor, old, REQUANTIZE_ARGS);
#ifdef TAIL
      if (c < c0) {
        for (int e = c0 - c; e < V; ++e) y[to + p * YP + e] = ((const uchar *)&done)[e];
        continue;
      }
#endif
      STB(y, to + p * YP, done);
    }
  }
}
