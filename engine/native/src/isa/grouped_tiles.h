// Register tiles of the convolution in small groups: neighbouring output pixels of one row, one vector of
// channels.
#pragma once

#include <math.h>

#include "activation.h"
#include "grouped_conv.h"

#if defined(LITE_GROUPED_CONV)

namespace lite::LITE_ISA {

struct GroupedTile {
  const Real* const* pointers;      // of each row of taps: [three][column], [one][pixel]
  int64_t rows;                     // of taps
  int32_t threes, ones;
  int64_t group_in;
  const GroupedVector* vector;
  const Real* weights;              // of the first of those rows
  const Real* bias;
  Real* out;
  ptrdiff_t out_pixel;
  const Real* residual;             // or nullptr
  ptrdiff_t residual_pixel;
  float lo, hi;
  bool hard_swish;                  // instead of the clamp
};

namespace {

template <GroupedVector::Spread>
struct Spread;

template <>
struct Spread<GroupedVector::kSplat> {
  static constexpr bool kQuads = true;
  int64_t x;
  explicit Spread(const GroupedVector& v) : x(v.first) {}
  LITE_INLINE F operator()(const Real* pixel) const { return splat(pixel[x]); }
  LITE_INLINE void next() { ++x; }
};

template <>
struct Spread<GroupedVector::kPermute> {
  static constexpr bool kQuads = false;
  int64_t x;
  I at;
  int32_t step_x, step_at;
  explicit Spread(const GroupedVector& v)
      : x(v.first), at(load(v.at)), step_x(v.step_x), step_at(v.step_at) {}
  LITE_INLINE F operator()(const Real* pixel) const { return permute(load(pixel + x), at); }
  LITE_INLINE void next() { x += step_x, at += splat(step_at); }
};

template <>
struct Spread<GroupedVector::kTwo> {
  static constexpr bool kQuads = false;
  int64_t x, y;
  I first;
  explicit Spread(const GroupedVector& v) : x(v.first), y(v.second), first(load(v.at)) {}
  LITE_INLINE F operator()(const Real* pixel) const {
    return select(first, splat(pixel[x]), splat(pixel[y]));
  }
  LITE_INLINE void next() { ++x, ++y; }
};

#if defined(__aarch64__)
// Lane `lane` of column c, for those of kPx outputs that see it through one of k taps.
template <int lane, int k, int s, int kPx>
LITE_INLINE void add_lane(int c, F d, const F (&f)[4][k], F (&sum)[kPx]) {
  LITE_UNROLL for (int x = 0; x < k; ++x) {
    const int p = (c - x) / s;
    if (c >= x && (c - x) % s == 0 && p < kPx) add_product<lane>(sum[p], f[lane][x], d);
  }
}

// The same of four j at once, which are the lanes of what is loaded. Columns that no output sees both of
// take turns: a sum waits for the one before.
template <int k, int s, int kPx>
LITE_INLINE void add_quad(const Real* const* column, int64_t j, const Real* w, F (&sum)[kPx]) {
  constexpr int kColumns = (kPx - 1) * s + k;
  F f[4][k];
  LITE_UNROLL for (int i = 0; i < 4; ++i)
    LITE_UNROLL for (int x = 0; x < k; ++x) f[i][x] = load(w + (i * k + x) * kLanes);
  LITE_UNROLL for (int i = 0; i < (kColumns + 5) / 6 * 3; ++i) {
    const int c = i / 3 * 6 + i % 3, other = c + 3;
    F d{}, e{};
    if (c < kColumns) d = load(column[c] + j);
    if (other < kColumns) e = load(column[other] + j);
    add_lane<0, k, s>(c, d, f, sum), add_lane<0, k, s>(other, e, f, sum);
    add_lane<1, k, s>(c, d, f, sum), add_lane<1, k, s>(other, e, f, sum);
    add_lane<2, k, s>(c, d, f, sum), add_lane<2, k, s>(other, e, f, sum);
    add_lane<3, k, s>(c, d, f, sum), add_lane<3, k, s>(other, e, f, sum);
  }
}
#endif

// k neighbouring taps of one row, stride s.
template <int k, int s, int kPx, class S>
LITE_INLINE void add_taps(const Real* const* column, S spread, int64_t group_in, const Real* w,
                          F (&sum)[kPx]) {
  constexpr int kColumns = (kPx - 1) * s + k;
  int64_t j = group_in;
#if defined(__aarch64__)
  if constexpr (S::kQuads) {
    for (; j >= 4; j -= 4, spread.x += 4, w += 4 * k * kLanes)
      add_quad<k, s, kPx>(column, spread.x, w, sum);
  }
#endif
  for (; j > 0; --j, w += k * kLanes) {
    F f[k];
    LITE_UNROLL for (int x = 0; x < k; ++x) f[x] = load(w + x * kLanes);
    LITE_UNROLL for (int c = 0; c < kColumns; ++c) {
      const F d = spread(column[c]);
      LITE_UNROLL for (int x = 0; x < k; ++x) {
        const int p = (c - x) / s;
        if (c >= x && (c - x) % s == 0 && p < kPx) sum[p] = fma(d, f[x], sum[p]);
      }
    }
    spread.next();
  }
}

void finish_part(const GroupedTile& t, const F* sum, int pixels) {
  const F lo = splat(t.lo), hi = splat(t.hi);
  const int n = t.vector->channels;
  for (int p = 0; p < pixels; ++p) {
    F v = sum[p];
    if (t.residual) v += load_part(t.residual + p * t.residual_pixel, n);
    v = t.hard_swish ? activate_vector<Act::kHardSwish>(v, lo, hi) : min(hi, max(lo, v));
    store_part(t.out + p * t.out_pixel, v, n);
  }
}

template <GroupedVector::Spread kSpread, int s, int kPx>
void run_tile(const GroupedTile& t) {
  const Spread<kSpread> spread(*t.vector);
  const F lo = splat(t.lo), hi = splat(t.hi), b = load(t.bias);
  F sum[kPx];
  LITE_UNROLL for (int p = 0; p < kPx; ++p) sum[p] = b;
  const Real* const* pointers = t.pointers;
  const Real* w = t.weights;
  for (int64_t row = t.rows; row > 0; --row) {
    for (int i = t.threes; i > 0; --i, w += 3 * t.group_in * kLanes, pointers += (kPx - 1) * s + 3)
      add_taps<3, s, kPx>(pointers, spread, t.group_in, w, sum);
    for (int i = t.ones; i > 0; --i, w += t.group_in * kLanes, pointers += kPx)
      add_taps<1, 1, kPx>(pointers, spread, t.group_in, w, sum);
  }
  // NOTE: a masked store of AVX2 takes AMD's processors as long as twenty products.
  if (t.vector->channels < kLanes) {
    F part[kPx];  // a copy, so that `sum` stays in registers
    LITE_UNROLL for (int p = 0; p < kPx; ++p) part[p] = sum[p];
    return finish_part(t, part, kPx);
  }
  if (t.residual) {
    LITE_UNROLL for (int p = 0; p < kPx; ++p) sum[p] += load(t.residual + p * t.residual_pixel);
  }
  if (t.hard_swish) {
    LITE_UNROLL for (int p = 0; p < kPx; ++p) sum[p] = activate_vector<Act::kHardSwish>(sum[p], lo, hi);
  } else {
    LITE_UNROLL for (int p = 0; p < kPx; ++p) sum[p] = min(hi, max(lo, sum[p]));
  }
  Real* out = t.out;
  LITE_UNROLL for (int p = 0; p < kPx; ++p, out += t.out_pixel) store(out, sum[p]);
}

}  // namespace
}  // namespace lite::LITE_ISA

#endif
