// The one-dimensional transforms of Winograd's F(2,3), F(4,3), F(5,3), F(6,3), F(2,5) and F(4,5), on vectors of
// channels, and of F(2,3) at stride 2: taps 0 and 2 meet the even pixels as F(2,2), tap 1 the odd ones as it is.
//
//   kTaps               of the weights
//   kOutputs, kPoints   of a tile; the tile reads kPoints pixels, each tile kOutputs * kStride further
//   kWeights            rows of the weights' transform that differ, and which row each point takes
//   output(t, o, bias)  adds the bias to every output; wide tiles, which only lie along rows, have no other
#pragma once

#include "f32_tile.h"

namespace lite::LITE_ISA {

// sum and difference = p ± k (a - c b). AArch64 multiplies in front: a product that is added and subtracted in
// place would be copied first.
LITE_INLINE void add_both(F p, float k, F a, float c, F b, F& sum, F& difference) {
#if defined(__aarch64__)
  F product = splat(k) * a - splat(k * c) * b;
  asm("" : "+w"(product));
  sum = p + product;
  difference = p - product;
#else
  const F q = a - splat(c) * b;
  sum = p + splat(k) * q;
  difference = p - splat(k) * q;
#endif
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
    add_both(d[4] - kFar2 * d[2], kNear, d[3], kFar2, d[1], o[1], o[2]);
    add_both(d[4] - kNear2 * d[2], kFar, d[3], kNear2, d[1], o[3], o[4]);
    constexpr float kSum = kNear2 + kFar2, kProduct = kNear2 * kFar2;
    o[0] = d[4] - kSum * d[2] + kProduct * d[0];
    o[5] = d[5] - kSum * d[3] + kProduct * d[1];
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

#if !defined(LITE_FP16)  // 11 bits are too few for these

// Outputs from the products at 0, ±1, ±2, ±1/2 and infinity. Each takes the sum or the difference of the products
// at ±1 once, and with it the bias.
template <int kOutputs>
LITE_INLINE void output_of_eight(const F* t, F* o, F bias) {
  const F one[2] = {t[1] + t[2] + bias, t[1] - t[2] + bias};
  const F two[2] = {t[3] + t[4], t[3] - t[4]}, half[2] = {t[5] + t[6], t[5] - t[6]};
  LITE_UNROLL for (int i = 0; i < kOutputs; ++i) {
    const float power = static_cast<float>(1 << i);
    o[i] = i == 0 ? one[0] + t[0] : i + 1 == kOutputs ? one[i % 2] + t[7] : one[i % 2];
    o[i] += power * two[i % 2];
    o[i] += 1 / power * half[i % 2];
  }
}

// At the points 0, ±1, ±2, ±1/2 and infinity: in float32, of sets of small fractions, these lose least.
struct F63 {
  static constexpr int kTaps = 3, kOutputs = 6, kPoints = 8, kStride = 1;
  static constexpr double kWeights[8][3] = {
      {1, 0, 0},
      {-2. / 9, -2. / 9, -2. / 9},
      {-2. / 9, 2. / 9, -2. / 9},
      {1. / 360, 1. / 180, 1. / 90},
      {1. / 360, -1. / 180, 1. / 90},
      {32. / 45, 16. / 45, 8. / 45},
      {32. / 45, -16. / 45, 8. / 45},
      {0, 0, 1}};
  static constexpr int kWeightOf[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  static LITE_INLINE void input(const F* d, F* o) {
    o[0] = (d[0] - d[6]) + 5.25f * (d[4] - d[2]);
    o[7] = (d[7] - d[1]) + 5.25f * (d[3] - d[5]);
    const F even = (d[2] + d[6]) - 4.25f * d[4], odd = (d[1] + d[5]) - 4.25f * d[3];
    o[1] = even + odd;
    o[2] = even - odd;
    // At ±2 four times as much, and weights a quarter: the same factors as at ±1/2.
    const F even2 = d[2] + 4 * d[6] - 5 * d[4], odd2 = d[1] + 4 * d[5] - 5 * d[3];
    o[3] = even2 + 2 * odd2;
    o[4] = even2 - 2 * odd2;
    const F even3 = d[6] + 4 * d[2] - 5 * d[4], odd3 = d[5] + 4 * d[1] - 5 * d[3];
    o[5] = even3 + .5f * odd3;
    o[6] = even3 - .5f * odd3;
  }
  static LITE_INLINE void output(const F* t, F* o, F bias) { output_of_eight<kOutputs>(t, o, bias); }
};

// Five taps at the points of F(6,3), whose input transform it shares: eight pixels are eight points of any filter.
struct F45 {
  static constexpr int kTaps = 5, kOutputs = 4, kPoints = 8, kStride = 1;
  static constexpr double kWeights[8][5] = {
      {1, 0, 0, 0, 0},
      {-2. / 9, -2. / 9, -2. / 9, -2. / 9, -2. / 9},
      {-2. / 9, 2. / 9, -2. / 9, 2. / 9, -2. / 9},
      {1. / 360, 1. / 180, 1. / 90, 1. / 45, 2. / 45},
      {1. / 360, -1. / 180, 1. / 90, -1. / 45, 2. / 45},
      {32. / 45, 16. / 45, 8. / 45, 4. / 45, 2. / 45},
      {32. / 45, -16. / 45, 8. / 45, -4. / 45, 2. / 45},
      {0, 0, 0, 0, 1}};
  static constexpr int kWeightOf[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  static LITE_INLINE void input(const F* d, F* o) { F63::input(d, o); }
  static LITE_INLINE void output(const F* t, F* o, F bias) { output_of_eight<kOutputs>(t, o, bias); }
};

// At the points 0, ±7/8, ±7/4, 3/8 and infinity, found as those of F(6,3).
struct F53 {
  static constexpr int kTaps = 3, kOutputs = 5, kPoints = 7, kStride = 1;
  static constexpr float kNear = .875f, kFar = 1.75f, kThird = .375f;
  static constexpr float kNear2 = kNear * kNear, kFar2 = kFar * kFar, kThird2 = kThird * kThird;
  // Of a point p: 1, p, p^2, divided by the product of its differences from the others.
  static constexpr double kWeights[7][3] = {
      {-8192. / 7203, 0, 0},
      {-4096. / 7203, -512. / 1029, -64. / 147},
      {8192. / 36015, -1024. / 5145, 128. / 735},
      {4096. / 79233, 1024. / 11319, 256. / 1617},
      {-4096. / 122451, 1024. / 17493, -256. / 2499},
      {4096. / 2805, 512. / 935, 192. / 935},
      {0, 0, 1}};
  static constexpr int kWeightOf[7] = {0, 1, 2, 3, 4, 5, 6};
  static LITE_INLINE void input(const F* d, F* o) {
    F e[7];                          // e[i]: what is left at i of the differences from the third point
    LITE_UNROLL for (int i = 1; i < 7; ++i) e[i] = d[i] - kThird * d[i - 1];
    add_both(e[5] - kFar2 * e[3], kNear, e[4], kFar2, e[2], o[1], o[2]);
    add_both(e[5] - kNear2 * e[3], kFar, e[4], kNear2, e[2], o[3], o[4]);
    constexpr float kSum = kNear2 + kFar2, kProduct = kNear2 * kFar2;
    o[0] = e[5] - kSum * e[3] + kProduct * e[1];
    o[5] = d[5] - kSum * d[3] + kProduct * d[1];
    o[6] = e[6] - kSum * e[4] + kProduct * e[2];
  }
  static LITE_INLINE void output(const F* t, F* o, F bias) {
    const F a = t[1] + t[2], b = t[1] - t[2], c = t[3] + t[4], d = t[3] - t[4], e = t[5];
    o[0] = (bias + t[0]) + a + c + e;
    o[1] = bias + kThird * e + kNear * (b + 2 * d);
    o[2] = bias + kThird2 * e + kNear2 * (a + 4 * c);
    o[3] = bias + kThird2 * kThird * e + kNear2 * kNear * (b + 8 * d);
    o[4] = (bias + t[6]) + kThird2 * kThird2 * e + kNear2 * kNear2 * (a + 16 * c);
  }
};

#endif

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
