// x (N,H,W,C) → y (N,OH,OW,C). -DAVERAGE, else maximum. COUNT_PAD counts padded places too.
// V channels an item.
//@ options HALF HALF_TYPES ALIGNED V=1,2,4,8,16 AVERAGE COUNT_PAD
//@ kernel pool
//@ need min(total, OH, OW, C) > 0, C % V == 0, total % V == 0, (g0 + 1) * V <= INT_MAX
//@ need min(H, W, KH, KW, SH, SW, DH, DW) >= 0, H + max(PB, -PB) <= INT_MAX, W + max(PR, -PR) <= INT_MAX
//@ need OH * SH + KH * DH + max(PT, -PT) <= INT_MAX, OW * SW + KW * DW + max(PL, -PL) <= INT_MAX
//@ items total / V
//@ reads x[up(total, OH * OW * C) * H * W * C]
//@ writes y[total]
kernel void pool(global const T *x, global T *y, int total, int H, int W, int C, int OH, int OW,
                 int KH, int KW, int SH, int SW, int PT, int PL, int PB, int PR, int DH, int DW) {
  const int i = get_global_id(0) * V;
  if (i >= total) return;
  const int c = i % C, ox = i / C % OW, oy = i / C / OW % OH, b = i / C / OW / OH;
#ifdef AVERAGE
  FV s = 0;
  int count = 0;
#else
  FV s = -INFINITY;
#endif
  for (int ky = 0; ky < KH; ++ky) {
    const int iy = oy * SH - PT + ky * DH;
    for (int kx = 0; kx < KW; ++kx) {
      const int ix = ox * SW - PL + kx * DW;
#if defined(AVERAGE) && defined(COUNT_PAD)
      if (iy < H + PB && ix < W + PR) ++count;
#endif
      if (iy < 0 || iy >= H || ix < 0 || ix >= W) continue;
      const FV v = LDV(x, ((b * H + iy) * W + ix) * C + c);
#ifdef AVERAGE
      s += v;
#ifndef COUNT_PAD
      ++count;
#endif
#else
      s = MAXIMUM(s, v);
#endif
    }
  }
#ifdef AVERAGE
  s /= (float)max(count, 1);  // a window that lies in padding alone is 0
#endif
  STV(y, i, s);
}
