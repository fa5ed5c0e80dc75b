// One tap, of a batch norm that no convolution took in, with loads and stores of two vectors: each pixel has
// addresses that move on by themselves.
#pragma once

#include "depthwise_tiles.h"

#if defined(__aarch64__) && !defined(LITE_FP16)
#define LITE_DEPTHWISE_SCALE

namespace lite::LITE_ISA {
namespace {

// Whole blocks of channels from t.begin on; returns the first channel behind them.
template <int kPx, bool kAdds>
LITE_INLINE int64_t scale_blocks(const TileArgs& t) {
  const float *x[kPx], *residual[kPx];
  float* y[kPx];
  LITE_UNROLL for (int p = 0; p < kPx; ++p) {
    x[p] = t.pointers[p] + t.begin;
    y[p] = t.out + p * t.out_pixel + t.begin;
    residual[p] = kAdds ? t.residual + p * t.residual_pixel + t.begin : nullptr;
  }
  const float *w = t.weights, *bias = t.bias + t.begin;
  const bool clips = t.lo != -INFINITY || t.hi != INFINITY;
  int64_t c = t.begin;
  for (; c + kBlock<kPixels> <= t.end; c += kBlock<kPixels>) {
    F f[2], d[kPx][2], acc[kPx][2];
    load_pair(f[0], f[1], w);
    LITE_UNROLL for (int p = 0; p < kPx; ++p) load_pair(d[p][0], d[p][1], x[p]);
    LITE_UNROLL for (int p = 0; p + 1 < kPx; ++p) load_pair_at(acc[p][0], acc[p][1], bias);
    load_pair(acc[kPx - 1][0], acc[kPx - 1][1], bias);
    LITE_UNROLL for (int p = 0; p < kPx; ++p)
      LITE_UNROLL for (int n = 0; n < 2; ++n) acc[p][n] = fma(d[p][n], f[n], acc[p][n]);
    if (kAdds) {
      LITE_UNROLL for (int p = 0; p < kPx; ++p) load_pair(d[p][0], d[p][1], residual[p]);
      LITE_UNROLL for (int p = 0; p < kPx; ++p)
        LITE_UNROLL for (int n = 0; n < 2; ++n) acc[p][n] += d[p][n];
    }
    if (clips) {
      const F lo = splat(t.lo), hi = splat(t.hi);
      LITE_UNROLL for (int p = 0; p < kPx; ++p)
        LITE_UNROLL for (int n = 0; n < 2; ++n) acc[p][n] = min(hi, max(lo, acc[p][n]));
    }
    LITE_UNROLL for (int p = 0; p < kPx; ++p) store_next_pair(y[p], acc[p][0], acc[p][1]);
  }
  return c;
}

template <int kPx>
void scale_tile(const TileArgs& t) {
  TileArgs rest = t;
  if (!t.hard_swish) rest.begin = t.residual ? scale_blocks<kPx, true>(t) : scale_blocks<kPx, false>(t);
  rest.weights += rest.begin - t.begin;
  if (rest.begin < t.end) tile<1, 0, kPx>(rest);
}

}  // namespace
}  // namespace lite::LITE_ISA

#endif
