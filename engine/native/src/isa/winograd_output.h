// Products of Winograd's points into a tile of output pixels, a vector of channels at a time.
#pragma once

#include <math.h>

#include "packed_tile.h"
#include "winograd_transform.h"

namespace lite::LITE_ISA {
namespace {

// On AArch64, which has the registers, an address or offset is not computed again in the loop.
template <class T>
LITE_INLINE void keep_in_register(T& value) {
#if defined(__aarch64__)
  asm("" : "+r"(value));
#endif
}

// A vector of columns of one tile of pixels, of which `rows` x `pixels` exist.
struct OutputTile {
  Real* c;
  int64_t row, pixel;
  int64_t rows, pixels;
  const Real* residual;               // or nullptr
  int64_t residual_row, residual_pixel;
  float slope;                        // 1: none
};

// The products of the points lie `stride` elements apart.
template <class Down, class Along>
LITE_INLINE void transform_output(const Real* products, int64_t stride, const Real* bias, float low,
                                  float high, const OutputTile& to) {
  constexpr int kRows = Down::kOutputs, kPixels = Along::kOutputs;
  F t[kRows][Along::kPoints], q[kRows][kPixels];
  LITE_UNROLL for (int j = 0; j < Along::kPoints; ++j) {
    F d[Down::kPoints], o[kRows];
    LITE_UNROLL for (int i = 0; i < Down::kPoints; ++i)
      d[i] = load(products + (i * Along::kPoints + j) * stride);
    Down::output(d, o);
    LITE_UNROLL for (int i = 0; i < kRows; ++i) t[i][j] = o[i];
  }
  const F added = load(bias);
  LITE_UNROLL for (int i = 0; i < kRows; ++i) Along::output(t[i], q[i], added);
  const int64_t rows = to.rows, pixels = to.pixels;
  if (to.residual) {
    int64_t row = to.residual_row, pixel = to.residual_pixel;
    keep_in_register(row);           // no address is made ahead of the loop over vectors, for nothing
    keep_in_register(pixel);
    LITE_UNROLL for (int i = 0; i < kRows; ++i)
      LITE_UNROLL for (int j = 0; j < kPixels; ++j)
        if (i < rows && j < pixels) q[i][j] += load(to.residual + i * row + j * pixel);
  }
  if (to.slope != 1) {
    const F slope = splat(to.slope);
    LITE_UNROLL for (int i = 0; i < kRows; ++i)
      LITE_UNROLL for (int j = 0; j < kPixels; ++j) q[i][j] = max(q[i][j], slope * q[i][j]);
  }
  const F lo = splat(low), hi = splat(high);
  if (low != -INFINITY) {
    LITE_UNROLL for (int i = 0; i < kRows; ++i)
      LITE_UNROLL for (int j = 0; j < kPixels; ++j) q[i][j] = max(lo, q[i][j]);
  }
  if (high != INFINITY) {
    LITE_UNROLL for (int i = 0; i < kRows; ++i)
      LITE_UNROLL for (int j = 0; j < kPixels; ++j) q[i][j] = min(hi, q[i][j]);
  }
  Real* c = to.c;
  const int64_t row = to.row, pixel = to.pixel;
  LITE_UNROLL for (int i = 0; i < kRows; ++i, c += row) {
    if (i == rows) return;
    if (pixels == kPixels) {
      LITE_UNROLL for (int j = 0; j < kPixels; ++j) store(c + j * pixel, q[i][j]);
    } else {
      LITE_UNROLL for (int j = 0; j + 1 < kPixels; ++j)
        if (j < pixels) store(c + j * pixel, q[i][j]);
    }
  }
}
#if defined(LITE_PACKED_TILE)
// Two vectors of columns, whose products lie together: down the columns into memory, then along each row. All at once
// takes more registers than there are.
template <class Down, class Along>
LITE_INLINE void transform_pair(const float* products, const float* bias, float low, float high, const OutputTile& to) {
  constexpr int kDown = Down::kPoints, kAlong = Along::kPoints, kPixels = Along::kOutputs;
  constexpr int kPair = 2 * kLanes, kBytes = kPair * 4;
  constexpr int kReached = kRowsInReach<kAlong * kBytes>;
  float between[Down::kOutputs * kAlong * kPair];
  for (int j = 0; j < kAlong; ++j) {
    const float *p = products + j * kPair, *beyond = p + kReached * kAlong * kPair;
    F d[2][kDown], o[2][Down::kOutputs];
    unroll<kDown>([&](auto i) __attribute__((always_inline)) {
      load_pair_at<i % kReached * kAlong * kBytes>(d[0][i], d[1][i], i < kReached ? p : beyond);
    });
    LITE_UNROLL for (int n = 0; n < 2; ++n) Down::output(d[n], o[n]);
    unroll<Down::kOutputs>([&](auto i) __attribute__((always_inline)) {
      store_pair<i * kAlong * kBytes>(between + j * kPair, o[0][i], o[1][i]);
    });
  }
  const F added[2] = {load(bias), load(bias + kLanes)}, lo = splat(low), hi = splat(high);
  // Not read again behind every store.
  const int64_t rows = to.rows, pixels = to.pixels, row = to.row, pixel = to.pixel;
  const int64_t residual_row = to.residual_row, residual_pixel = to.residual_pixel;
  const float slope = to.slope, *t = between, *residual = to.residual;
  const bool leaks = slope != 1, bounds = low != -INFINITY || high != INFINITY;
  float* c = to.c;
  for (int64_t i = 0; i < rows; ++i, t += kAlong * kPair, c += row) {
    F d[2][kAlong], q[2][kPixels];
    unroll<kAlong>([&](auto j) __attribute__((always_inline)) {
      load_pair_at<j * kBytes>(d[0][j], d[1][j], t);
    });
    LITE_UNROLL for (int n = 0; n < 2; ++n) Along::output(d[n], q[n], added[n]);
    if (residual) {
      const float* from = residual;
      LITE_UNROLL for (int j = 0; j < kPixels; ++j, from += residual_pixel) {
        if (j == pixels) break;
        F first, second;
        load_pair_at(first, second, from);
        q[0][j] += first;
        q[1][j] += second;
      }
      residual += residual_row;
    }
    const auto change = [&](auto f) __attribute__((always_inline)) {
      LITE_UNROLL for (int n = 0; n < 2; ++n)
        LITE_UNROLL for (int j = 0; j < kPixels; ++j) q[n][j] = f(q[n][j]);
    };
    if (leaks) change([&](F v) { return max(v, splat(slope) * v); });
    if (bounds) {
      if (low != -INFINITY) change([&](F v) { return max(lo, v); });
      if (high != INFINITY) change([&](F v) { return min(hi, v); });
    }
    float* at = c;
    if (pixels == kPixels) {
      LITE_UNROLL for (int j = 0; j < kPixels; ++j, at += pixel) store_pair(at, q[0][j], q[1][j]);
    } else {
      LITE_UNROLL for (int j = 0; j + 1 < kPixels; ++j, at += pixel)
        if (j < pixels) store_pair(at, q[0][j], q[1][j]);
    }
  }
}
#endif
template <class Down, class Along>
__attribute__((noinline)) void transform_vector(const Real* products, int64_t stride, const Real* bias,
                                             float low, float high, const OutputTile& to) {
  transform_output<Down, Along>(products, stride, bias, low, high, to);
}

LITE_INLINE void copy_lanes(Real* to, const Real* from, int lanes) {
  if (lanes == kLanes) store(to, load(from));
  else store_part(to, load_part(from, lanes), lanes);
}

// The first `lanes` of a vector: what lies outside stays in a tile of its own.
template <class Down, class Along>
__attribute__((noinline)) void transform_part(const Real* products, int64_t stride, const Real* bias,
                                              float low, float high, const OutputTile& to, int lanes) {
  constexpr int kRows = Down::kOutputs, kPixels = Along::kOutputs;
  Real c[kRows][kPixels][kLanes], r[kRows][kPixels][kLanes];
  for (int64_t i = 0; to.residual && i < to.rows; ++i)
    for (int64_t j = 0; j < to.pixels; ++j)
      copy_lanes(r[i][j], to.residual + i * to.residual_row + j * to.residual_pixel, lanes);
  const OutputTile own{c[0][0], kPixels * kLanes, kLanes, to.rows, to.pixels,
                       to.residual ? r[0][0] : nullptr, kPixels * kLanes, kLanes, to.slope};
  transform_vector<Down, Along>(products, stride, bias, low, high, own);
  for (int64_t i = 0; i < to.rows; ++i)
    for (int64_t j = 0; j < to.pixels; ++j)
      copy_lanes(to.c + i * to.row + j * to.pixel, c[i][j], lanes);
}

}  // namespace
}  // namespace lite::LITE_ISA
