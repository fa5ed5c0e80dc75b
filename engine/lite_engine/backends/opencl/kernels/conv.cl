// Convolution of x (N,H,W,C) with packed weights w (blocks, KH·KW·C, V): a work-item makes TM output
// pixels times V channels in registers, without local memory or barriers.
#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define FV PASTE(float, V)
#define LDV(p, i) PASTE(LD, V)(p, i)
#define STV(p, i, v) PASTE(ST, V)(p, i, v)
#define LOADF(p, i) PASTE(vload, V)(0, (p) + (i))

kernel void conv(global const T *x, global const W_T *w, global const float *bias,
                 global const T *residual, global T *y, int M, int H, int W, int C, int OH, int OW,
                 int O, int KH, int KW, int SH, int SW, int PT, int PL, int DH, int DW) {
  const int block = get_global_id(0), m0 = get_global_id(1) * TM;
  if (m0 >= M) return;
  int iy[TM], ix[TM], base[TM];
  FV acc[TM];
  const FV start = LOADF(bias, block * V);
  for (int t = 0; t < TM; ++t) {
    const int m = min(m0 + t, M - 1);
    iy[t] = m / OW % OH * SH - PT;
    ix[t] = m % OW * SW - PL;
    base[t] = m / OW / OH * H;
    acc[t] = start;
  }
  global const W_T *wp = w + (size_t)block * KH * KW * C * V;
  for (int ky = 0; ky < KH; ++ky)
    for (int kx = 0; kx < KW; ++kx) {
      int at[TM];
      float inside[TM];
      for (int t = 0; t < TM; ++t) {
        const int yy = iy[t] + ky * DH, xx = ix[t] + kx * DW;
        const int good = yy >= 0 && yy < H && xx >= 0 && xx < W;
        inside[t] = good ? 1.0f : 0.0f;
        at[t] = good ? ((base[t] + yy) * W + xx) * C : 0;
      }
      for (int c = 0; c < C; ++c, wp += V) {
        const FV wv = LOADW(wp, 0);
        for (int t = 0; t < TM; ++t) acc[t] += wv * (LD(x, at[t] + c) * inside[t]);
      }
    }
  const int o = block * V;
  for (int t = 0; t < TM && m0 + t < M; ++t) {
    const int to = (m0 + t) * O + o;
    float v[V];
    PASTE(vstore, V)(acc[t], 0, v);
    const int wide = min(V, O - o);
    for (int k = 0; k < wide; ++k) {
      float u = v[k];
#ifdef RESIDUAL
      u += LD(residual, to + k);
#endif
      ST(y, to + k, ACT(u));
    }
  }
}
