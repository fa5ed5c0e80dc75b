// Convolutions of bytes that read through images, as conv_image.cl does with floats. A texel holds 16 neighbouring
// channels as four words, the operands of four dot products; bytes of x are those of i8_tile.cl (signed, or unsigned
// with -DDOT_QCOM), zeros beyond C. Outputs are buffers as everywhere. A work-item makes TM neighbouring pixels of an
// output row times V channels: four, or with -DDEPTHWISE the 16 of a texel.
//
// x: column x·blocks + block, row n·H + y, where block numbers sixteens of channels. w: row = block of four outputs;
// column = ((ky·KW + kx)·blocks + block)·4 + output; -DDEPTHWISE: row = block of channels, column = ky·KW + kx.
// -DW_ZERO: weights have zero points; then C is a multiple of 16.
//@ options V=4,16 TM=1..8 DEPTHWISE W_ZERO DOT_KHR DOT_ARM DOT_ARM_ADD DOT_QCOM DOT_PTX
constant sampler_t TEXELS = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;
#define TEXEL(image, column, row) read_imageui(image, TEXELS, (int2)((column), (row)))
#define DOTS(p, q, s) DOT((p).w, (q).w, DOT((p).z, (q).z, DOT((p).y, (q).y, DOT((p).x, (q).x, s))))
#define ONES 0x01010101u

//@ kernel to_image
//@ let blocks = up(C, 16)
//@ need C > 0, columns % blocks == 0, C + 16 <= INT_MAX
//@ items columns, rows
//@ reads x[x_at, rows * (columns / blocks), XP, C]
//@ writes image[columns, rows]
kernel void to_image(global const uchar *x, write_only image2d_t image, int C, int columns, int rows, int XP,
                     int x_at, int x_flip) {
  const int column = get_global_id(0), row = get_global_id(1), blocks = (C + 15) / 16;
  if (column >= columns || row >= rows) return;
  const int c = column % blocks * 16;
  x += x_at + ((size_t)row * (columns / blocks) + column / blocks) * XP + c;
  uchar16 v = 0;
  if (C - c >= 16) {
    v = FLIP(vload16(0, x), x_flip);
  } else {
    uchar some[16];
    vstore16(v, 0, some);
    for (int e = 0; e < C - c; ++e) some[e] = FLIP(x[e], x_flip);
    v = vload16(0, some);
  }
  write_imageui(image, (int2)(column, row), as_uint4(v));
}

//@ kernel conv
//@ let wide = up(O, V) * V
//@ let deep = KH * KW * (DEPTHWISE + (1 - DEPTHWISE) * blocks * 4)
//@ let spans = up(OW, TM)
//@ need V == 4 + 12 * DEPTHWISE, DEPTHWISE * W_ZERO == 0
//@ need min(OH, OW, O, blocks) > 0, min(H, W, KH, KW, SH, SW, DH, DW) >= 0, O + V <= INT_MAX
//@ need OH * SH + KH * DH + max(PT, -PT) <= INT_MAX, (OW + TM) * SW + KW * DW + max(PL, -PL) <= INT_MAX
//@ need up(O, 16) <= blocks when DEPTHWISE
//@ items up(O, V), images * OH * spans
//@ reads x[W * blocks, images * H], w[deep, up(O, V)], bias[wide], scale[wide]
//@ reads w_zero[wide] when W_ZERO
//@ reads residual[images * OH * OW * O] when adding
//@ writes y[y_at, images * OH * OW, YP, O]
kernel void conv(read_only image2d_t x, read_only image2d_t w, global const int *bias, global const float *scale,
                 global const int *w_zero, global const uchar *residual, global uchar *y, int images, int H, int W,
                 int blocks, int OH, int OW, int O, int KH, int KW, int SH, int SW, int PT, int PL, int DH, int DW,
                 int YP, int y_at, int x_fill, REQUANTIZE) {
  const int spans = (OW + TM - 1) / TM, block = get_global_id(0), o = block * V;
  const int row = get_global_id(1) / spans, ox = get_global_id(1) % spans * TM;
  if (o >= O || row >= images * OH) return;
  const uint4 outside = (uint4)((uint)x_fill);
  IV acc[TM];
  UNROLL for (int t = 0; t < TM; ++t) acc[t] = LDIV(bias, o);
#ifdef W_ZERO
  int total[TM];
  UNROLL for (int t = 0; t < TM; ++t) total[t] = 0;
#endif
  for (int ky = 0; ky < KH; ++ky) {
    const int yy = row % OH * SH - PT + ky * DH, line = row / OH * H + yy;
    for (int kx = 0; kx < KW; ++kx) {
      const int tap = ky * KW + kx;
      int at[TM];
      UNROLL for (int t = 0; t < TM; ++t) {
        const int xx = (ox + t) * SW - PL + kx * DW;
        at[t] = yy >= 0 && yy < H && xx >= 0 && xx < W ? xx * blocks : -1;
      }
#ifdef DEPTHWISE
      const IV f = TO_INT(as_char16(TEXEL(w, tap, block)));
      UNROLL for (int t = 0; t < TM; ++t) {
        const uint4 v = at[t] >= 0 ? TEXEL(x, at[t] + block, line) : outside;
        acc[t] = mad24(TO_INT(as_char16(v)), f, acc[t]);
      }
#else
      for (int b = 0; b < blocks; ++b) {
        const int k = (tap * blocks + b) * 4;
        const uint4 w0 = TEXEL(w, k, block), w1 = TEXEL(w, k + 1, block);
        const uint4 w2 = TEXEL(w, k + 2, block), w3 = TEXEL(w, k + 3, block);
        UNROLL for (int t = 0; t < TM; ++t) {
          const uint4 v = at[t] >= 0 ? TEXEL(x, at[t] + b, line) : outside;
          acc[t].x = DOTS(w0, v, acc[t].x);
          acc[t].y = DOTS(w1, v, acc[t].y);
          acc[t].z = DOTS(w2, v, acc[t].z);
          acc[t].w = DOTS(w3, v, acc[t].w);
#ifdef W_ZERO
          total[t] = DOTS((uint4)(ONES), v, total[t]);
#endif
        }
      }
#endif
    }
  }
  const FV by = LDFV(scale, o);
  for (int t = 0; t < min(TM, OW - ox); ++t) {
    const size_t pixel = (size_t)row * OW + ox + t, from = pixel * O + o, to = pixel * YP + y_at + o;
    IV sum = acc[t];
#ifdef W_ZERO
    sum -= LDIV(w_zero, o) * total[t];
#endif
    UV old = 0;
    uchar some[V];
    if (adding && O - o >= V) {
      old = LDB(residual, from);
    } else if (adding) {
      PASTE(vstore, V)(old, 0, some);
      for (int e = 0; e < O - o; ++e) some[e] = residual[from + e];
      old = LDB(some, 0);
    }
    const UV done = requantized(sum, by, old, REQUANTIZE_ARGS);
    if (O - o >= V) {
      STB(y, to, done);
    } else {
      PASTE(vstore, V)(done, 0, some);
      for (int e = 0; e < O - o; ++e) y[to + e] = some[e];
    }
  }
}
