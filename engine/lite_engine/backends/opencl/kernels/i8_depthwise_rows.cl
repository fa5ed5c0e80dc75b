// One filter per channel for GPUs, by dot products along the rows of a window: an item makes PY x PX neighbouring
// pixels of four channels. Bytes of four neighbouring columns of one channel are a word of x, which are made from
// words of four channels; they begin at even columns, and where outputs do at odd ones (SW 1), taps are moved by a
// byte instead. w (KH, WORDS, C) has the taps of a row in words of signed bytes, zeros beyond. Bytes of x become
// signed, or with -DDOT_QCOM unsigned, by `x_flip`; `x_fill` stands for what lies outside the image. Pixels of x and y
// lie XP and YP elements apart, the first x_at and y_at from the start.
//@ options V=4 ALIGNED DOT_KHR DOT_ARM DOT_ARM_ADD DOT_QCOM DOT_PTX
//@ options PX=2..16 PY=1..4 KH=1..8 KW=1..8 SH=1,2 SW=1,2
#define WORDS ((KW + (SW == 1) + 3) / 4)
#define COLUMNS ((PX - 1) * SW + KW)
#define PAIR(p) (SW == 1 ? (p) / 2 : (p))  // of columns, in which the window of output p begins
#define PAIRS (PAIR(PX - 1) + 2 * WORDS)
#define ROWS ((PY - 1) * SH + KH)
// Bytes of p and q side by side: the lower two of each, or the upper two, in turns or one after the other.
#ifdef DOT_PTX
static inline uint permuted(uint p, uint q, uint order) {
  uint made;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(made) : "r"(p), "r"(q), "r"(order));
  return made;
}
#define LOWER_TURNS(p, q) permuted(p, q, 0x5140)
#define UPPER_TURNS(p, q) permuted(p, q, 0x7362)
#define LOWER(p, q) permuted(p, q, 0x5410)
#define UPPER(p, q) permuted(p, q, 0x7632)
#else
#define LOWER_TURNS(p, q) as_uint((uchar4)(as_uchar4(p).s0, as_uchar4(q).s0, as_uchar4(p).s1, as_uchar4(q).s1))
#define UPPER_TURNS(p, q) as_uint((uchar4)(as_uchar4(p).s2, as_uchar4(q).s2, as_uchar4(p).s3, as_uchar4(q).s3))
#define LOWER(p, q) (((p) & 0xffffu) | ((q) << 16))
#define UPPER(p, q) (((p) >> 16) | ((q) & 0xffff0000u))
#endif
#define EACH_RESULT(OLD, ...)                                                    \
  UNROLL for (int q = 0; q < PY; ++q)                                            \
    UNROLL for (int p = 0; p < PX; ++p) {                                        \
      if (oy + q >= OH || ox + p >= OW) continue;                                \
      const uchar4 done = requantized(sum[q][p], factor, (uchar4)(OLD), __VA_ARGS__); \
      STB(y, (q * OW + p) * YP, done);                                           \
    }

//@ kernel depthwise_rows
//@ let bands = up(OH, PY)
//@ let words = up(KW + (SW == 1), 4)
//@ items C / 4, up(OW, PX), images * bands
//@ need min(C, H, W, OH, OW) > 0, C % 4 + XP % 4 + x_at % 4 + YP % 4 + y_at % 4 == 0
//@ need PX % 2 == 0, (H + PY) * W * XP <= INT_MAX, (PY * OW + PX) * max(YP, C) <= INT_MAX
//@ need (OH + PY + 1) * SH + KH + max(PT, -PT) <= INT_MAX, (OW + PX + 1) * SW + KW + max(PL, -PL) <= INT_MAX
//@ reads x[x_at, images * H * W, XP, C], w[KH * words * C], bias[C], scale[C]
//@ reads residual[images * OH * OW * C] when adding
//@ writes y[y_at, images * OH * OW, YP, C]
kernel void depthwise_rows(global const uchar *x, global const uint *w, global const int *bias,
                           global const float *scale, global const uchar *residual, global uchar *y, int images,
                           int H, int W, int C, int OH, int OW, int PT, int PL, int XP, int x_at, int YP, int y_at,
                           int x_flip, int x_fill, REQUANTIZE) {
  const int c = get_global_id(0) * 4, ox = get_global_id(1) * PX, line = get_global_id(2);
  const int bands = (OH + PY - 1) / PY;
  if (c >= C || ox >= OW || line >= images * bands) return;
  const int b = line / bands, oy = (line - b * bands) * PY, y0 = oy * SH - PT, x0 = ox * SW - PL;
  x += (size_t)b * H * W * XP + x_at + c;
  uint4 taps[KH][WORDS];
  UNROLL for (int k = 0; k < KH; ++k)
    UNROLL for (int j = 0; j < WORDS; ++j) taps[k][j] = *(global const uint4 *)(w + (k * WORDS + j) * C + c);
  const int4 start = LDIV(bias, c);
  const float4 factor = LDFV(scale, c);
  int4 sum[PY][PX];
  UNROLL for (int q = 0; q < PY; ++q)
    UNROLL for (int p = 0; p < PX; ++p) sum[q][p] = start;
  // Outside the image all loads read its edge: masks, and no branches, keep them all under way at once.
  int columns[COLUMNS];
  uint inside[COLUMNS];
  UNROLL for (int i = 0; i < COLUMNS; ++i) {
    columns[i] = clamp(x0 + i, 0, W - 1) * XP;
    inside[i] = -(uint)((uint)(x0 + i) < (uint)W);
  }
  UNROLL for (int r = 0; r < ROWS; ++r) {
    global const uchar *from = x + clamp(y0 + r, 0, H - 1) * W * XP;
    const uint within = -(uint)((uint)(y0 + r) < (uint)H);
    uint in[PAIRS * 2], lower[PAIRS], upper[PAIRS];
    UNROLL for (int i = 0; i < PAIRS * 2; ++i) {
      in[i] = 0;  // no tap meets it
      if (i >= COLUMNS) continue;
      const uint found = *(global const uint *)(from + columns[i]) ^ (uint)x_flip;
      in[i] = bitselect((uint)x_fill, found, within & inside[i]);
    }
    UNROLL for (int a = 0; a < PAIRS; ++a) {
      lower[a] = LOWER_TURNS(in[2 * a], in[2 * a + 1]);
      upper[a] = UPPER_TURNS(in[2 * a], in[2 * a + 1]);
    }
    UNROLL for (int a = 0; a + 1 < PAIRS; ++a) {
      const uint x_0 = LOWER(lower[a], lower[a + 1]), x_1 = UPPER(lower[a], lower[a + 1]);
      const uint x_2 = LOWER(upper[a], upper[a + 1]), x_3 = UPPER(upper[a], upper[a + 1]);
      UNROLL for (int j = 0; j < WORDS; ++j)
        UNROLL for (int p = 0; p < PX; ++p) {
          if (PAIR(p) + 2 * j != a) continue;
          UNROLL for (int q = 0; q < PY; ++q) {
            const int k = r - q * SH;
            if (k < 0 || k >= KH) continue;
            uint4 t = taps[k][j];
            if (SW == 1 && p % 2) t = j ? t << 8 | taps[k][j ? j - 1 : 0] >> 24 : t << 8;
            sum[q][p].s0 = DOT(t.s0, x_0, sum[q][p].s0);
            sum[q][p].s1 = DOT(t.s1, x_1, sum[q][p].s1);
            sum[q][p].s2 = DOT(t.s2, x_2, sum[q][p].s2);
            sum[q][p].s3 = DOT(t.s3, x_3, sum[q][p].s3);
          }
        }
    }
  }
  const size_t pixel = ((size_t)b * OH + oy) * OW + ox;
  y += pixel * YP + y_at + c;
  if (adding) {
    residual += pixel * C + c;
    EACH_RESULT(LDB(residual, (q * OW + p) * C), REQUANTIZE_ARGS)
  } else {
    EACH_RESULT(0, PLAIN_ARGS)
  }
}
