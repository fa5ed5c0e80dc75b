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

// One output value a work-item: grouped convolutions and whatever nothing faster takes.
// w (KH·KW·C/G, O).
kernel void conv_grouped(global const T *x, global const W_T *w, global const float *bias,
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
             LDW(w, ((ky * KW + kx) * cg + c) * O + o);
    }
  }
#ifdef RESIDUAL
  s += LD(residual, m * O + o);
#endif
  ST(y, m * O + o, ACT(s));
}

// One filter per channel, w (KH·KW, C).
kernel void conv_depthwise(global const T *x, global const W_T *w, global const float *bias,
                           global const T *residual, global T *y, int M, int H, int W, int C, int OH,
                           int OW, int O, int KH, int KW, int SH, int SW, int PT, int PL, int DH,
                           int DW) {
  const int c = get_global_id(0), m = get_global_id(1);
  if (c >= C || m >= M) return;
  const int y0 = m / OW % OH * SH - PT, x0 = m % OW * SW - PL, base = m / OW / OH * H;
  float s = bias[c];
  for (int ky = 0; ky < KH; ++ky) {
    const int yy = y0 + ky * DH;
    if (yy < 0 || yy >= H) continue;
    for (int kx = 0; kx < KW; ++kx) {
      const int xx = x0 + kx * DW;
      if (xx < 0 || xx >= W) continue;
      s += LD(x, ((base + yy) * W + xx) * C + c) * LDW(w, (ky * KW + kx) * C + c);
    }
  }
#ifdef RESIDUAL
  s += LD(residual, m * C + c);
#endif
  ST(y, m * C + c, ACT(s));
}

// Transposed convolution, gathered: each output looks for the inputs that reach it.
// w (KH·KW·C/G, O).
kernel void deconv(global const T *x, global const W_T *w, global const float *bias, global T *y,
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
             LDW(w, ((ky * KW + kx) * cg + c) * O + o);
    }
  }
  ST(y, m * O + o, ACT(s));
}
