// Convolutions that read through images, whose cache buffers do not have on phones' GPUs (Adreno). Inputs and
// weights are RGBA texels of four channels; sums are float; outputs are buffers as everywhere. A work-item
// makes TM neighbouring pixels of an output row times four channels.
//
// x: column x·blocks + block, row n·H + y, where block numbers fours of channels; beside an image all is 0.
// w: row = block of four outputs; column k = ((ky·KW + kx)·blocks + block)·4 + channel holds the weights of
// that input channel for the four outputs. -DDEPTHWISE: column = ky·KW + kx, row = block of channels.
//@ options HALF TM=1..16 DEPTHWISE RESIDUAL ACT(x) ACT_A:number ACT_B:number
constant sampler_t TEXELS = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;
#define TEXEL(image, column, row) read_imagef(image, TEXELS, (int2)((column), (row)))

//@ kernel to_image
//@ let blocks = up(C, 4)
//@ need C > 0, columns % blocks == 0, C + 4 <= INT_MAX
//@ items columns, rows
//@ reads x[rows * (columns / blocks) * C]
//@ writes image[columns, rows]
kernel void to_image(global const T *x, write_only image2d_t image, int C, int columns, int rows) {
  const int column = get_global_id(0), row = get_global_id(1), blocks = (C + 3) / 4;
  if (column >= columns || row >= rows) return;
  const int c = column % blocks * 4;
  x += ((size_t)row * (columns / blocks) + column / blocks) * C + c;
  float v[4] = {0, 0, 0, 0};
  for (int e = 0; e < min(4, C - c); ++e) v[e] = LD(x, e);
  write_imagef(image, (int2)(column, row), vload4(0, v));
}

//@ kernel conv_image
//@ let deep = KH * KW * (DEPTHWISE + (1 - DEPTHWISE) * blocks * 4)
//@ let spans = up(OW, TM)
//@ need min(OH, OW, O, blocks) > 0, min(H, W, KH, KW, SH, SW, DH, DW) >= 0, O + 4 <= INT_MAX
//@ need OH * SH + KH * DH + max(PT, -PT) <= INT_MAX, (OW + TM) * SW + KW * DW + max(PL, -PL) <= INT_MAX
//@ items up(O, 4), images * OH * spans
//@ reads x[W * blocks, images * H], w[deep, up(O, 4)], bias[up(O, 4) * 4]
//@ reads residual[images * OH * OW * O] when RESIDUAL
//@ writes y[images * OH * OW * O]
kernel void conv_image(read_only image2d_t x, read_only image2d_t w, global const float *bias,
                       global const T *residual, global T *y, int images, int H, int W, int blocks, int OH,
                       int OW, int O, int KH, int KW, int SH, int SW, int PT, int PL, int DH, int DW) {
  const int spans = (OW + TM - 1) / TM, block = get_global_id(0), o = block * 4;
  const int row = get_global_id(1) / spans, ox = get_global_id(1) % spans * TM;
  if (o >= O || row >= images * OH) return;
  float4 sum[TM];
  UNROLL for (int t = 0; t < TM; ++t) sum[t] = vload4(0, bias + o);
  for (int ky = 0; ky < KH; ++ky) {
    const int yy = row % OH * SH - PT + ky * DH, line = row / OH * H + yy;
    if (yy < 0 || yy >= H) continue;
    for (int kx = 0; kx < KW; ++kx) {
      const int tap = ky * KW + kx;
      int at[TM];
      UNROLL for (int t = 0; t < TM; ++t) {
        const int xx = (ox + t) * SW - PL + kx * DW;
        at[t] = xx >= 0 && xx < W ? xx * blocks : -blocks;
      }
#ifdef DEPTHWISE
      const float4 f = TEXEL(w, tap, block);
      UNROLL for (int t = 0; t < TM; ++t) sum[t] = mad(TEXEL(x, at[t] + block, line), f, sum[t]);
#else
      for (int b = 0; b < blocks; ++b) {
        const int k = (tap * blocks + b) * 4;
        const float4 w0 = TEXEL(w, k, block), w1 = TEXEL(w, k + 1, block);
        const float4 w2 = TEXEL(w, k + 2, block), w3 = TEXEL(w, k + 3, block);
        UNROLL for (int t = 0; t < TM; ++t) {
          const float4 v = TEXEL(x, at[t] + b, line);
          sum[t] = mad(v.x, w0, mad(v.y, w1, mad(v.z, w2, mad(v.w, w3, sum[t]))));
        }
      }
#endif
    }
  }
  for (int t = 0; t < min(TM, OW - ox); ++t) {
    const size_t to = ((size_t)row * OW + ox + t) * O + o;
    float v[4];
    vstore4(sum[t], 0, v);
    for (int e = 0; e < min(4, O - o); ++e) {
      float s = v[e];
#ifdef RESIDUAL
      s += LD(residual, to + e);
#endif
      const float done = ACT(s);
      ST(y, to + e, done);
    }
  }
}
