// Convolution for CPUs, without local memory and barriers. A work-item makes TM neighbouring pixels of an
// output row times NV vectors of channels, all sums in registers. x (N,H,W,C) is float and carries its
// padding, so that every tap lies inside; w (blocks, KH·KW·C, NV·V); y (N,OH,OW,O). Pixels lie XP and YP
// elements apart, the first x_at and y_at from the start, those of the residual RP from 0 on. Axis 2 numbers
// independent products or groups of channels, `x_plane`, `w_plane`, `bias_plane` and `y_plane` elements apart;
// the residual's groups lie as far apart as those of y.
//@ options HALF FAST_FMA V=4,8,16 NV=1,2 TM=1..14 ACT(x) ACT_A:number ACT_B:number
#define BN (NV * V)
#if NV == 2
#define SECOND(...) __VA_ARGS__
#else
#define SECOND(...)
#endif

#define START(t) FV a##t = first; SECOND(FV b##t = second;)
#define STEP(t)                       \
  {                                   \
    const float s = from[AT(t) + k];  \
    a##t = FMA(s, wa, a##t);          \
    SECOND(b##t = FMA(s, wb, b##t);)  \
  }
#define SUM                                                               \
  for (int ky = 0; ky < KH; ++ky)                                         \
    for (int kx = 0; kx < across; ++kx) {                                 \
      global const float *from = x + (ky * DH * W + kx * DW) * XP;        \
      for (int k = 0; k < run; ++k, w += BN) {                            \
        const FV wa = LDFV(w, 0);                                         \
        SECOND(const FV wb = LDFV(w, V);)                                 \
        EACH(TM, STEP)                                                    \
      }                                                                   \
    }
#define FINISH(t)                                                        \
  put_all(a##t, residual, old + t * RP, y, to + t * YP, ENDING_ARGS);    \
  SECOND(put_all(b##t, residual, old + t * RP + V, y, to + t * YP + V, ENDING_ARGS);)
#define KEEP(t) done[t * NV] = a##t; SECOND(done[t * NV + 1] = b##t;)

// Residual and activation of V channels.
static inline void put_all(FV v, global const T *residual, int old, global T *y, int to, ENDING) {
  if (with_residual) v += LDV(residual, old);
  const FV done = END(v);
  STV(y, to, done);
}

// The same of the `left` channels that there are.
static inline void put(FV v, global const T *residual, int old, global T *y, int to, int left, ENDING) {
  if (left >= V) {
    put_all(v, residual, old, y, to, ENDING_ARGS);
    return;
  }
  float u[V];
  STFV(u, 0, v);
  for (int i = 0; i < left; ++i) {
    float s = u[i];
    if (with_residual) s += LD(residual, old + i);
    const float done = END(s);
    ST(y, to + i, done);
  }
}

//@ kernel conv
//@ let tiles = up(OW, TM)
//@ let rows = g0 / tiles
//@ let wide = up(O, NV * V) * NV * V
//@ group 1, 1, 1
//@ items rows * tiles, wide / (NV * V), g2
//@ need min(OH, OW, KH, KW, O) > 0, min(H, W, C, SH, SW, DH, DW) >= 0
//@ need min(XP, RP, x_plane, w_plane, bias_plane, y_plane) >= 0
//@ let line = (rows - 1) / OH * H + (min(rows, OH) - 1) * SH + (KH - 1) * DH
//@ let across = (g2 - 1) * y_plane + O
//@ need rows * OW * RP + wide <= INT_MAX, KW * C <= INT_MAX
//@ reads x[(g2 - 1) * x_plane + x_at + (line * W + (OW - 1) * SW + (KW - 1) * DW) * XP + C]
//@ reads w[(g2 - 1) * w_plane + wide * KH * KW * C], bias[(g2 - 1) * bias_plane + wide]
//@ reads residual[0, rows * OW, RP, across] when with_residual
//@ writes y[y_at, rows * OW, YP, across] when across <= YP
//@ writes y[y_at + (rows * OW - 1) * YP + across] when across > YP
kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void conv(global const float *x, global const float *w, global const float *bias,
          global const T *residual, global T *y, int H, int W, int C, int OH, int OW, int O, int KH,
          int KW, int SH, int SW, int DH, int DW, int XP, int x_at, int YP, int y_at, int RP, int x_plane,
          int w_plane, int bias_plane, int y_plane, ENDING) {
  const int tiles = (OW + TM - 1) / TM, row = get_global_id(0) / tiles;
  const int ox = get_global_id(0) % tiles * TM, valid = min(TM, OW - ox);
  const int o = get_global_id(1) * BN, step = SW * XP;
  // Where taps are neighbours, a row of the window is one run of numbers.
  const int joined = DW == 1 && XP == C, across = joined ? 1 : KW, run = joined ? KW * C : C;
  x += (size_t)get_global_id(2) * x_plane + ((row / OH * H + row % OH * SH) * W + ox * SW) * XP + x_at;
  w += (size_t)get_global_id(2) * w_plane + (size_t)o * KH * KW * C;
  bias += (size_t)get_global_id(2) * bias_plane;
  residual += (size_t)get_global_id(2) * y_plane;
  y += (size_t)get_global_id(2) * y_plane;
  const int old = (row * OW + ox) * RP + o, to = (row * OW + ox) * YP + y_at + o;
  const FV first = LDFV(bias, o);
  SECOND(const FV second = LDFV(bias, o + V);)
  EACH(TM, START)
  if (valid == TM) {
#define AT(t) t * step
    SUM
#undef AT
  } else {
#define AT(t) min(t, valid - 1) * step
    SUM
#undef AT
  }
#ifdef LINEAR_END  // short enough to be compiled for every sum
  if (valid == TM && O - o >= BN) {
    EACH(TM, FINISH)
    return;
  }
#endif
  // In a loop, which the compiler does not unroll: what a layer ends with is compiled once, not for every sum.
  FV done[TM * NV];
  EACH(TM, KEEP)
  for (int i = 0; i < valid * NV; ++i) {
    const int pixel = i / NV, beside = i % NV * V;
    put(done[i], residual, old + pixel * RP + beside, y, to + pixel * YP + beside, O - o - beside, ENDING_ARGS);
  }
}
