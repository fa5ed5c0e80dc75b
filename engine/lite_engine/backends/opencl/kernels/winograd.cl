// 3x3 convolution with stride 1 as 36 products (Lavin 2016, F(4x4, 3x3)): tiles of 6x6 inputs, one
// every four pixels, become 36 numbers each; conv_tile multiplies; 36 sums become 4x4 outputs.
// Points 0, ±A, ±B, ∞. Two and their halves lose half of what 0, ±1, ±2 lose, because the numbers of the
// transforms lie closer together (Barabasz et al. 2020); these are exact in binary.
//@ options HALF V=1,2,4,8,16 ACT(x) ACT_A:number ACT_B:number

#define A 0.75f
#define B 1.5f

// d (6) → Bᵀ d
#define TO_POINTS(d0, d1, d2, d3, d4, d5, OUT) \
  do { \
    const FV p = d4 - B * B * d2, q = A * (d3 - B * B * d1); \
    const FV r = d4 - A * A * d2, s = B * (d3 - A * A * d1); \
    OUT(0, A * A * B * B * d0 - (A * A + B * B) * d2 + d4) \
    OUT(1, p + q) \
    OUT(2, p - q) \
    OUT(3, r + s) \
    OUT(4, r - s) \
    OUT(5, A * A * B * B * d1 - (A * A + B * B) * d3 + d5) \
  } while (0)

// x (N,H,W,C), pixels XP apart from x_at on → v (36, tiles, C)
//@ kernel to_points
//@ need min(tiles, TH, TW, C) > 0, C % V == 0, min(H, W) >= 0, (g0 + 1) * V <= INT_MAX
//@ need TH * 4 + max(PT, -PT) + 6 <= INT_MAX, TW * 4 + max(PL, -PL) + 6 <= INT_MAX
//@ items C / V, tiles
//@ reads x[x_at, up(tiles, TH * TW) * H * W, XP, C]
//@ writes v[36 * tiles * C]
kernel void to_points(global const T *x, global float *v, int tiles, int H, int W, int C, int TH,
                      int TW, int PT, int PL, int XP, int x_at) {
  const int c = get_global_id(0) * V, tile = get_global_id(1);
  if (c >= C || tile >= tiles) return;
  const int y0 = tile / TW % TH * 4 - PT, x0 = tile % TW * 4 - PL, base = tile / TW / TH * H;
  FV d[6][6];
  UNROLL for (int i = 0; i < 6; ++i)
    UNROLL for (int j = 0; j < 6; ++j) {
      const int yy = y0 + i, xx = x0 + j;
      const int inside = yy >= 0 && yy < H && xx >= 0 && xx < W;
      d[i][j] = 0;
      if (inside) d[i][j] = LDV(x, ((size_t)(base + yy) * W + xx) * XP + x_at + c);
    }
  FV t[6][6];
  UNROLL for (int j = 0; j < 6; ++j) {
#define OUT(k, value) t[k][j] = value;
    TO_POINTS(d[0][j], d[1][j], d[2][j], d[3][j], d[4][j], d[5][j], OUT);
#undef OUT
  }
  global float *to = v + (size_t)tile * C + c;
  const size_t plane = (size_t)tiles * C;
  UNROLL for (int i = 0; i < 6; ++i) {
#define OUT(k, value) STFV(to, (i * 6 + k) * plane, value);
    TO_POINTS(t[i][0], t[i][1], t[i][2], t[i][3], t[i][4], t[i][5], OUT);
#undef OUT
  }
}

// m (6) → Aᵀ m (4)
#define FROM_POINTS(m0, m1, m2, m3, m4, m5, OUT) \
  do { \
    const FV p = m1 + m2, q = m1 - m2, r = m3 + m4, s = m3 - m4; \
    OUT(0, m0 + p + r) \
    OUT(1, A * q + B * s) \
    OUT(2, A * A * p + B * B * r) \
    OUT(3, A * A * A * q + B * B * B * s + m5) \
  } while (0)

// m (36, tiles, O) → y (N,OH,OW,O), pixels YP apart from y_at on, with bias, residual and activation
//@ kernel from_points
//@ let pixels = up(tiles, TH * TW) * OH * OW
//@ need min(tiles, TH, TW, O) > 0, O % V == 0, min(OH, OW) >= 0, (g0 + 1) * V <= INT_MAX
//@ need TH * 4 + 4 <= INT_MAX, TW * 4 + 4 <= INT_MAX
//@ items O / V, tiles
//@ reads m[36 * tiles * O], bias[O]
//@ reads residual[pixels * O] when with_residual
//@ writes y[y_at, pixels, YP, O]
kernel void from_points(global const float *m, global const float *bias, global const T *residual,
                        global T *y, int tiles, int OH, int OW, int O, int TH, int TW, int YP,
                        int y_at, ENDING) {
  const int o = get_global_id(0) * V, tile = get_global_id(1);
  if (o >= O || tile >= tiles) return;
  const int y0 = tile / TW % TH * 4, x0 = tile % TW * 4, base = tile / TW / TH * OH;
  global const float *from = m + (size_t)tile * O + o;
  const size_t plane = (size_t)tiles * O;
  FV t[4][6];
  UNROLL for (int j = 0; j < 6; ++j) {
    FV d[6];
    UNROLL for (int i = 0; i < 6; ++i) d[i] = LDFV(from, (i * 6 + j) * plane);
#define OUT(k, value) t[k][j] = value;
    FROM_POINTS(d[0], d[1], d[2], d[3], d[4], d[5], OUT);
#undef OUT
  }
  const FV start = LDFV(bias, o);
  UNROLL for (int i = 0; i < 4; ++i) {
    FV u[4];
#define OUT(k, value) u[k] = value;
    FROM_POINTS(t[i][0], t[i][1], t[i][2], t[i][3], t[i][4], t[i][5], OUT);
#undef OUT
    UNROLL for (int j = 0; j < 4; ++j) {
      if (y0 + i >= OH || x0 + j >= OW) continue;
      const size_t pixel = (size_t)(base + y0 + i) * OW + x0 + j, to = pixel * YP + y_at + o;
      FV s = u[j] + start;
      if (with_residual) s += LDV(residual, pixel * O + o);
      const FV done = END(s);
      STV(y, to, done);
    }
  }
}
