// x (N,H,W,C) → y (N,OH,OW,C), V channels an item: the maximum, or with -DAVERAGE the sum of x - x_zero times
// ratios[count of the places that count], COUNT_PAD padded ones too. With AWAY the sum over
// that count, ties away from 0.
//@ options V=1,4,8,16 ALIGNED AVERAGE COUNT_PAD AWAY
//@ kernel pool
//@ need min(total, OH, OW, C, KH, KW) > 0, C % V == 0, total % V == 0, (g0 + 1) * V <= INT_MAX
//@ need min(H, W, SH, SW, DH, DW) >= 0, H + max(PB, -PB) <= INT_MAX, W + max(PR, -PR) <= INT_MAX
//@ need OH * SH + KH * DH + max(PT, -PT) <= INT_MAX, OW * SW + KW * DW + max(PL, -PL) <= INT_MAX
//@ items total / V
//@ reads x[up(total, OH * OW * C) * H * W * C]
//@ reads ratios[KH * KW + 1] when AVERAGE
//@ writes y[total]
kernel void pool(global const uchar *x, global const float *ratios, global uchar *y, int total, int H, int W, int C,
                 int OH, int OW, int KH, int KW, int SH, int SW, int PT, int PL, int PB, int PR, int DH, int DW,
                 int flip, int x_zero, float y_zero) {
  const int i = get_global_id(0) * V;
  if (i >= total) return;
  const int c = i % C, ox = i / C % OW, oy = i / C / OW % OH, b = i / C / OW / OH;
  IV s = 0;
#ifdef AVERAGE
  int count = 0;
#endif
  for (int ky = 0; ky < KH; ++ky) {
    const int iy = oy * SH - PT + ky * DH;
    _Pragma("unroll 8") for (int kx = 0; kx < KW; ++kx) {
      const int ix = ox * SW - PL + kx * DW;
#if defined(AVERAGE) && defined(COUNT_PAD)
      if (iy < H + PB && ix < W + PR) ++count;
#endif
      if (iy < 0 || iy >= H || ix < 0 || ix >= W) continue;
      const IV v = TO_INT(FLIP(LDB(x, (size_t)((b * H + iy) * W + ix) * C + c), flip));
#ifdef AVERAGE
      s += v - x_zero;
#ifndef COUNT_PAD
      ++count;
#endif
#else
      s = max(s, v);
#endif
    }
  }
#ifdef AWAY
  const IV most = count / 2;
  s = (s + (s > 0 ? most : -most)) / max(count, 1) + (int)y_zero;
#elif defined(AVERAGE)
  const FV whole = rint(TO_FLOAT(s) * ratios[max(count, 1)]) + y_zero;
  s = TO_INT(WITHIN(whole));
#endif
  STB(y, i, FLIP(TO_BYTE(s), flip));
}
