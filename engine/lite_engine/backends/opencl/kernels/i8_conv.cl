// Convolution of integers for CPUs, without local memory and barriers: a work-item makes TM neighbouring pixels of
// an output row times NV vectors of channels, all sums in registers. x (N,H,W,C) is made by `widen`: numbers of 16
// bits less their zero point, with their padding, two a word; C counts words. w (blocks, KH·KW·C, NV·V) likewise.
// Pixels of y lie YP elements apart, the first y_at from the start; the residual is dense.
//@ options V=4,8,16 NV=1,2 TM=1..14
#define BN (NV * V)
#if NV == 2
#define SECOND(...) __VA_ARGS__
#else
#define SECOND(...)
#endif
// s + the products of both halves of words
#define HALVES(v) __builtin_astype(v, halves)
#if defined(CPU) && V == 16 && defined(__AVX512VNNI__)
typedef int words __attribute__((vector_size(64)));
#define WORDS(v) __builtin_astype(v, words)
#define DOT2(s, w, x) as_int16(__builtin_ia32_vpdpwssd512(WORDS(s), WORDS(w), WORDS((IV)(x))))
#elif defined(CPU) && V == 16 && defined(__AVX512BW__)
typedef short halves __attribute__((vector_size(64)));
#define DOT2(s, w, x) ((s) + as_int16(__builtin_ia32_pmaddwd512(HALVES(w), HALVES((IV)(x)))))
#elif defined(CPU) && V == 8 && defined(__AVX2__)
typedef short halves __attribute__((vector_size(32)));
#define DOT2(s, w, x) ((s) + as_int8(__builtin_ia32_pmaddwd256(HALVES(w), HALVES((IV)(x)))))
#elif defined(CPU) && V == 4 && defined(__SSE2__)
typedef short halves __attribute__((vector_size(16)));
#define DOT2(s, w, x) ((s) + as_int4(__builtin_ia32_pmaddwd128(HALVES(w), HALVES((IV)(x)))))
#else
#define DOT2(s, w, x) ((s) + (((w) << 16) >> 16) * (((x) << 16) >> 16) + ((w) >> 16) * ((x) >> 16))
#endif

#define START(t) IV a##t = LDIV(bias, o); SECOND(IV b##t = LDIV(bias, o + V);)
#define STEP(t)                      \
  {                                  \
    const int s = from[AT(t) + k];   \
    a##t = DOT2(a##t, wa, s);        \
    SECOND(b##t = DOT2(b##t, wb, s);) \
  }
#define SUM                                                     \
  for (int ky = 0; ky < KH; ++ky)                               \
    for (int kx = 0; kx < across; ++kx) {                       \
      global const int *from = x + (ky * DH * W + kx * DW) * C; \
      for (int k = 0; k < run; ++k, w += BN) {                  \
        const IV wa = LDIV(w, 0);                               \
        SECOND(const IV wb = LDIV(w, V);)                       \
        EACH(TM, STEP)                                          \
      }                                                         \
    }
#define KEEP(t) done[t * NV] = a##t; SECOND(done[t * NV + 1] = b##t;)

//@ kernel conv
//@ let tiles = up(OW, TM)
//@ let rows = g0 / tiles
//@ let wide = up(O, NV * V) * NV * V
//@ let line = (rows - 1) / OH * H + (min(rows, OH) - 1) * SH + (KH - 1) * DH
//@ group 1, 1
//@ items rows * tiles, wide / (NV * V)
//@ need min(OH, OW, KH, KW, O) > 0, min(H, W, C, SH, SW, DH, DW) >= 0, KW * C <= INT_MAX, wide <= INT_MAX
//@ reads x[(line * W + (OW - 1) * SW + (KW - 1) * DW + 1) * C]
//@ reads w[wide * KH * KW * C], bias[wide], scale[wide]
//@ reads residual[rows * OW * O] when adding
//@ writes y[y_at, rows * OW, YP, O]
kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void conv(global const int *x, global const int *w, global const int *bias, global const float *scale,
          global const uchar *residual, global uchar *y, int H, int W, int C, int OH, int OW, int O, int KH, int KW,
          int SH, int SW, int DH, int DW, int YP, int y_at, REQUANTIZE) {
  const int tiles = (OW + TM - 1) / TM, row = get_global_id(0) / tiles;
  const int ox = get_global_id(0) % tiles * TM, valid = min(TM, OW - ox);
  const int o = get_global_id(1) * BN, step = SW * C;
  // Where taps are neighbours, a row of the window is one run of words.
  const int across = DW == 1 ? 1 : KW, run = DW == 1 ? KW * C : C;
  x += (size_t)((row / OH * H + row % OH * SH) * W + ox * SW) * C;
  w += (size_t)o * KH * KW * C;
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
  IV done[TM * NV];
  EACH(TM, KEEP)
  const size_t pixel = (size_t)row * OW + ox;
  for (int i = 0; i < valid * NV; ++i) {
    const int beside = o + i % NV * V;
    const size_t old = (pixel + i / NV) * O + beside, to = (pixel + i / NV) * YP + y_at + beside;
    const FV factor = LDFV(scale, beside);
    if (beside + V <= O) {
      UV r = 0;
      if (adding) r = LDB(residual, old);
      STB(y, to, requantized(done[i], factor, r, REQUANTIZE_ARGS));
    } else {
      UV r = 0;
      for (int e = 0; e < V; ++e) ((uchar *)&r)[e] = adding && beside + e < O ? residual[old + e] : (uchar)0;
      const UV after = requantized(done[i], factor, r, REQUANTIZE_ARGS);
      for (int e = 0; beside + e < O; ++e) y[to + e] = ((const uchar *)&after)[e];
    }
  }
}

// Bytes x (N,H,W,C), pixels XP apart from x_at on, as y (N,HP,WP,CP): less their zero point, zeros around them. An
// item has a row.
//@ kernel widen
//@ need min(rows, HP) > 0, min(H, W, C, top, left) >= 0, left + W <= WP, C <= CP
//@ items rows
//@ reads x[x_at, up(rows, HP) * H * W, XP, C]
//@ writes y[rows * WP * CP]
kernel void widen(global const uchar *x, global short *y, int rows, int H, int W, int C, int CP, int top, int left,
                  int HP, int WP, int XP, int x_at, int flip, int zero) {
  const int row = get_global_id(0);
  if (row >= rows) return;
  const int yy = row % HP - top;
  global short *to = y + (size_t)row * WP * CP;
  if (yy < 0 || yy >= H) {
    for (int i = 0; i < WP * CP; ++i) to[i] = 0;
    return;
  }
  global const uchar *from = x + (size_t)((row / HP * H + yy) * W) * XP + x_at;
  for (int i = 0; i < left * CP; ++i) to[i] = 0;
  to += left * CP;
  // Neighbouring pixels are one run where nothing lies between them.
  const int joined = XP == C && CP == C, pixels = joined ? 1 : W, run = joined ? W * C : C;
  for (int p = 0; p < pixels; ++p, from += XP, to += CP) {
    for (int i = 0; i < run; ++i) to[i] = (short)((int)FLIP(from[i], flip) - zero);
    if (CP > C && !joined) to[C] = 0;
  }
  if (joined) to += W * C - CP;
  for (int i = 0; i < (WP - left - W) * CP; ++i) to[i] = 0;
}
