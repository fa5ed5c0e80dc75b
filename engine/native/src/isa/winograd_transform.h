// The one-dimensional transforms of Winograd's F(2,3), F(4,3) and F(2,5), on vectors of channels, and of
// F(2,3) at stride 2: taps 0 and 2 meet the even pixels as F(2,2), tap 1 the odd ones as it is.
//
//   kTaps               of the weights
//   kOutputs, kPoints   of a tile; the tile reads kPoints pixels, each tile kOutputs * kStride further
//   kWeights            rows of the weights' transform that differ, and which row each point takes
//   output(t, o, bias)  adds the bias to every output
#pragma once

#include "f32_tile.h"

namespace lite::LITE_ISA {

// sum = a + k b, difference = a - k b. AArch64 multiplies once: there a sum that a product is added to in place
// would be copied first.
LITE_INLINE void add_both(F a, float k, F b, F& sum, F& difference) {
  F product = splat(k) * b;
#if defined(__aarch64__)
  asm("" : "+w"(product));
#endif
  sum = a + product;
  difference = a - product;
}

struct F23 {
  static constexpr int kTaps = 3, kOutputs = 2, kPoints = 4, kStride = 1;
  static constexpr double kWeights[4][3] = {{1, 0, 0}, {.5, .5, .5}, {.5, -.5, .5}, {0, 0, 1}};
  static constexpr int kWeightOf[4] = {0, 1, 2, 3};
  static LITE_INLINE void input(const F* d, F* o) {
    o[0] = d[0] - d[2];
    o[1] = d[1] + d[2];
    o[2] = d[2] - d[1];
    o[3] = d[1] - d[3];
  }
  static LITE_INLINE void output(const F* t, F* o) {
    o[0] = t[0] + t[1] + t[2];
    o[1] = t[1] - t[2] - t[3];
  }
  static LITE_INLINE void output(const F* t, F* o, F bias) {
    const F once = t[1] + bias;
    o[0] = t[0] + once + t[2];
    o[1] = once - t[2] - t[3];
  }
};

struct F23By2 {
  static constexpr int kTaps = 3, kOutputs = 2, kPoints = 5, kStride = 2;
  static constexpr double kWeights[4][3] = {{1, 0, 0}, {1, 0, 1}, {0, 0, 1}, {0, 1, 0}};
  static constexpr int kWeightOf[5] = {0, 1, 2, 3, 3};
  static LITE_INLINE void input(const F* d, F* o) {
    o[0] = d[0] - d[2];
    o[1] = d[2];
    o[2] = d[2] - d[4];
    o[3] = d[1];
    o[4] = d[3];
  }
  static LITE_INLINE void output(const F* t, F* o) {
    o[0] = t[0] + t[1] + t[3];
    o[1] = t[1] - t[2] + t[4];
  }
  static LITE_INLINE void output(const F* t, F* o, F bias) {
    const F once = t[1] + bias;
    o[0] = t[0] + once + t[3];
    o[1] = once - t[2] + t[4];
  }
};

// At the points 0, ±3/4, ±3/2 and infinity: their powers lie closer together than those of 1 and 2, so that
// float32 loses half as much (Barabasz et al. 2020), and they are exact in binary.
struct F43 {
  static constexpr int kTaps = 3, kOutputs = 4, kPoints = 6, kStride = 1;
  static constexpr float kNear = .75f, kFar = 1.5f;
  static constexpr float kNear2 = kNear * kNear, kNear3 = kNear2 * kNear, kFar2 = kFar * kFar;
  static constexpr double kFactors[6] = {64. / 81,  -128. / 243, -128. / 243,   // of the points
                                         32. / 243, 32. / 243,   1};
  static constexpr double kWeights[6][3] = {
      {64. / 81, 0, 0},
      {-128. / 243, -32. / 81, -8. / 27},
      {-128. / 243, 32. / 81, -8. / 27},
      {32. / 243, 16. / 81, 8. / 27},
      {32. / 243, -16. / 81, 8. / 27},
      {0, 0, 1}};
  static constexpr int kWeightOf[6] = {0, 1, 2, 3, 4, 5};
  static LITE_INLINE void input(const F* d, F* o) {
    const F p = d[4] - kFar2 * d[2], q = d[3] - kFar2 * d[1];
    add_both(p, kNear, q, o[1], o[2]);
    const F r = d[4] - kNear2 * d[2], s = d[3] - kNear2 * d[1];
    add_both(r, kFar, s, o[3], o[4]);
    o[0] = r + kFar2 * (kNear2 * d[0] - d[2]);
    o[5] = (d[5] - kNear2 * d[3]) - kFar2 * s;
  }
  static LITE_INLINE void output(const F* t, F* o) {
    const F a = t[1] + t[2], b = t[1] - t[2], c = t[3] + t[4], d = t[3] - t[4];
    o[0] = t[0] + a + c;
    o[3] = t[5] + kNear3 * (b + 8 * d);
    o[1] = kNear * (b + 2 * d);
    o[2] = kNear2 * (a + 4 * c);
  }
  static LITE_INLINE void output(const F* t, F* o, F bias) {
    const F a = t[1] + t[2], b = t[1] - t[2], c = t[3] + t[4], d = t[3] - t[4];
    o[0] = (t[0] + bias) + a + c;
    o[3] = (t[5] + bias) + kNear3 * (b + 8 * d);
    o[1] = bias + kNear * (b + 2 * d);
    o[2] = bias + kNear2 * (a + 4 * c);
  }
};

// At the points of F(4,3), whose input transform it shares: six pixels are six points of any filter.
struct F25 {
  static constexpr int kTaps = 5, kOutputs = 2, kPoints = 6, kStride = 1;
  static constexpr double kWeights[6][5] = {
      {64. / 81, 0, 0, 0, 0},
      {-128. / 243, -32. / 81, -8. / 27, -2. / 9, -1. / 6},
      {-128. / 243, 32. / 81, -8. / 27, 2. / 9, -1. / 6},
      {32. / 243, 16. / 81, 8. / 27, 4. / 9, 2. / 3},
      {32. / 243, -16. / 81, 8. / 27, -4. / 9, 2. / 3},
      {0, 0, 0, 0, 1}};
  static constexpr int kWeightOf[6] = {0, 1, 2, 3, 4, 5};
  static LITE_INLINE void input(const F* d, F* o) { F43::input(d, o); }
  static LITE_INLINE void output(const F* t, F* o) {
    o[0] = t[0] + (t[1] + t[2]) + (t[3] + t[4]);
    o[1] = t[5] + F43::kNear * ((t[1] - t[2]) + 2 * (t[3] - t[4]));
  }
  static LITE_INLINE void output(const F* t, F* o, F bias) {
    o[0] = (t[0] + bias) + (t[1] + t[2]) + (t[3] + t[4]);
    o[1] = (t[5] + bias) + F43::kNear * ((t[1] - t[2]) + 2 * (t[3] - t[4]));
  }
};

// At the points 0, ±1, ±2 and infinity, in whole numbers: point 1 counts once in every output.
struct F43Whole {
  static constexpr int kOutputs = 4, kPoints = 6, kStride = 1;
  static constexpr double kWeights[6][3] = {
      {1. / 4, 0, 0},           {-1. / 6, -1. / 6, -1. / 6}, {-1. / 6, 1. / 6, -1. / 6},
      {1. / 24, 1. / 12, 1. / 6}, {1. / 24, -1. / 12, 1. / 6}, {0, 0, 1}};
  static constexpr int kWeightOf[6] = {0, 1, 2, 3, 4, 5};
  template <class V>
  static LITE_INLINE void input(const V* d, V* o) {
    // In this order nearly every product is added in place.
    const V r = d[4] - d[2], s = 2 * (d[3] - d[1]);
    o[3] = r + s;
    o[4] = r - s;
    o[0] = r + 4 * (d[0] - d[2]);
    o[5] = (d[5] - d[3]) - 2 * s;
    const V p = d[4] - 4 * d[2], q = d[3] - 4 * d[1];
    o[1] = p + q;
    o[2] = p - q;
  }
  template <class V>
  static LITE_INLINE void output(const V* t, V* o) {
    const V a = t[1] + t[2], b = t[1] - t[2], c = t[3] + t[4], d = t[3] - t[4];
    o[0] = t[0] + a + c;
    o[3] = (t[5] + b) + 8 * d;
    o[1] = b + 2 * d;
    o[2] = a + 4 * c;
  }
};

}  // namespace lite::LITE_ISA
