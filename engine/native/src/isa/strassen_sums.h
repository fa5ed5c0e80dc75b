// The additions of Strassen's scheme, of matrices in four quarters, and which factors its products take.
#pragma once

#include <math.h>

#include "packed_tile.h"
#include "strassen.h"

namespace lite::LITE_ISA {
namespace {

// Of a product's rows and weights: the four sums, in the order of add_rows and add_weights, then quarters.
enum : int { kUpperLeft = kStrassenSums, kUpperRight, kLowerLeft, kLowerRight };
constexpr struct {
  int rows, weights;
} kStrassenFactors[kStrassenProducts] = {{kUpperLeft, kUpperLeft}, {kUpperRight, kLowerLeft}, {3, kLowerRight},
                                         {kLowerRight, 3},         {0, 0},                    {1, 1},
                                         {2, 2}};

// A matrix: elements from one row to the next, to the lower half and to the right half.
template <class T>
struct Quarters {
  T* at;
  int64_t ld, down, across;
};

// Two vectors, a row of a panel; `next`: p moves on.
#if defined(LITE_PACKED_TILE)
LITE_INLINE void load_row(F (&v)[2], const float* p) { load_pair_at(v[0], v[1], p); }
LITE_INLINE void load_next(F (&v)[2], const float*& p) { load_pair(v[0], v[1], p); }
LITE_INLINE void store_row(float* p, const F (&v)[2]) { store_pair(p, v[0], v[1]); }
LITE_INLINE void store_next(float*& p, const F (&v)[2]) { store_next_pair(p, v[0], v[1]); }
#else
LITE_INLINE void load_row(F (&v)[2], const float* p) {
  LITE_UNROLL for (int n = 0; n < 2; n++) v[n] = load(p + n * kLanes);
}
LITE_INLINE void load_next(F (&v)[2], const float*& p) { load_row(v, p), p += kTileColumns; }
LITE_INLINE void store_row(float* p, const F (&v)[2]) {
  LITE_UNROLL for (int n = 0; n < 2; n++) store(p + n * kLanes, v[n]);
}
LITE_INLINE void store_next(float*& p, const F (&v)[2]) { store_row(p, v), p += kTileColumns; }
#endif
static_assert(kTileColumns == 2 * kLanes);

// The sums of rows of `height` by `width` numbers a quarter, `size` apart, by rows of ld.
LITE_INLINE void add_rows(Quarters<const float> a, int64_t height, int64_t width, float* sums, int64_t ld,
                          int64_t size) {
  const auto add = [](F a11, F a12, F a21, F a22, F* s1, F* s2, F* s3, F* s4) __attribute__((always_inline)) {
    *s1 = a21 + a22;
    *s2 = *s1 - a11;
    *s3 = a11 - a21;
    *s4 = a12 - *s2;
  };
  for (int64_t m = 0; m < height; ++m, a.at += a.ld, sums += ld) {
    const float *a11 = a.at, *a12 = a11 + a.across, *a21 = a11 + a.down, *a22 = a21 + a.across;
    float *s1 = sums, *s2 = s1 + size, *s3 = s2 + size, *s4 = s3 + size;
    int64_t left = width;
    for (; left >= 2 * kLanes; left -= 2 * kLanes) {
      F b11[2], b12[2], b21[2], b22[2], t1[2], t2[2], t3[2], t4[2];
      load_next(b11, a11), load_next(b12, a12), load_next(b21, a21), load_next(b22, a22);
      LITE_UNROLL for (int n = 0; n < 2; n++)
        add(b11[n], b12[n], b21[n], b22[n], &t1[n], &t2[n], &t3[n], &t4[n]);
      store_next(s1, t1), store_next(s2, t2), store_next(s3, t3), store_next(s4, t4);
    }
    for (int64_t i = 0; i < left; i += kLanes) {
      const int n = static_cast<int>(left - i < kLanes ? left - i : kLanes);
      F t1, t2, t3, t4;
      add(load_part(a11 + i, n), load_part(a12 + i, n), load_part(a21 + i, n), load_part(a22 + i, n), &t1, &t2,
          &t3, &t4);
      store_part(s1 + i, t1, n), store_part(s2 + i, t2, n);
      store_part(s3 + i, t3, n), store_part(s4 + i, t4, n);
    }
  }
}

// Of `depth` rows of a left and a right panel, above and below; the sums lie `size` apart.
LITE_INLINE void add_weights(int64_t depth, const float* const (&w)[2][2], float* sums, int64_t size) {
  const float *w11 = w[0][0], *w12 = w[0][1], *w21 = w[1][0], *w22 = w[1][1];
  float *to1 = sums, *to2 = to1 + size, *to3 = to2 + size, *to4 = to3 + size;
  for (; depth > 0; --depth) {
    F b11[2], b12[2], b21[2], b22[2], t1[2], t2[2], t3[2], t4[2];
    load_next(b11, w11), load_next(b12, w12), load_next(b21, w21), load_next(b22, w22);
    LITE_UNROLL for (int n = 0; n < 2; n++) {
      t1[n] = b12[n] - b11[n];
      t2[n] = b22[n] - t1[n];
      t3[n] = b22[n] - b12[n];
      t4[n] = t2[n] - b21[n];
    }
    store_next(to1, t1), store_next(to2, t2), store_next(to3, t3), store_next(to4, t4);
  }
}

// What the sums of the products become in c: with a bias, with what is added, between bounds.
struct Finish {
  const float* bias[2];             // of the left and the right panel, or nullptr
  Quarters<const float> more;       // or nullptr
  float lo, hi;
};

template <bool kBias, bool kMore, bool kClips>
void combine_as(const float* products, int64_t ld, int64_t size, int64_t height, const Finish& f,
                Quarters<float> c) {
  const F lo = splat(f.lo), hi = splat(f.hi);
  F b1[2] = {}, b2[2] = {};
  if (kBias) load_row(b1, f.bias[0]), load_row(b2, f.bias[1]);
  const auto finish = [&](F (&v)[2], const F (&bias)[2], int64_t to, int64_t from) __attribute__((always_inline)) {
    F more[2];
    if (kMore) load_row(more, f.more.at + from);
    LITE_UNROLL for (int n = 0; n < 2; n++) {
      if (kBias) v[n] += bias[n];
      if (kMore) v[n] += more[n];
      if (kClips) v[n] = min(hi, max(lo, v[n]));
    }
    store_row(c.at + to, v);
  };
  int64_t to = 0, from = 0;
  for (int64_t i = 0; i < height; ++i, products += ld, to += c.ld, from += f.more.ld) {
    F p[kStrassenProducts][2], u3[2];
    LITE_UNROLL for (int j = 0; j < kStrassenProducts; ++j) load_row(p[j], products + j * size);
    LITE_UNROLL for (int n = 0; n < 2; n++) {
      const F u2 = p[0][n] + p[5][n];
      u3[n] = u2 + p[6][n];
      p[0][n] += p[1][n];
      p[2][n] = u2 + p[4][n] + p[2][n];
      p[3][n] = u3[n] - p[3][n];
      u3[n] += p[4][n];
    }
    finish(p[0], b1, to, from);
    finish(p[2], b2, to + c.across, from + f.more.across);
    finish(p[3], b1, to + c.down, from + f.more.down);
    finish(u3, b2, to + c.down + c.across, from + f.more.down + f.more.across);
  }
}

// Sums of the products, `size` apart by rows of ld, to `height` rows and one panel of each quarter of c.
inline void combine(const float* products, int64_t ld, int64_t size, int64_t height, const Finish& f,
                    Quarters<float> c) {
  using Fn = void (*)(const float*, int64_t, int64_t, int64_t, const Finish&, Quarters<float>);
  static constexpr Fn kFns[2][2][2] = {
      {{combine_as<false, false, false>, combine_as<false, false, true>},
       {combine_as<false, true, false>, combine_as<false, true, true>}},
      {{combine_as<true, false, false>, combine_as<true, false, true>},
       {combine_as<true, true, false>, combine_as<true, true, true>}}};
  const bool clips = f.lo != -INFINITY || f.hi != INFINITY;
  kFns[f.bias[0] != nullptr][f.more.at != nullptr][clips](products, ld, size, height, f, c);
}

// Additions must not overflow: rows of larger numbers, and of what is not finite, are multiplied plainly. Of the
// sum of a row's squares, so that numbers are below 1e19.
constexpr float kLargeSum = 1e38f;
// A row's error is relative to the largest of all rows that are added up (Higham 2002, section 23.2.2), so those
// of much smaller ones, such as a padded token's zeros, are multiplied plainly: a normalization behind
// the product would amplify their errors. The largest ratio of two sums of squares: 16 of two norms, four bits.
constexpr float kUneven = 256;

// Whether `rows` rows of n numbers may be added to each other: they are finite, their sums do not overflow, and
// none is much smaller than another.
inline bool rows_may_be_added(const float* x, int64_t ld, int64_t rows, int64_t n) {
  float least = kLargeSum, most = 0;
  for (; rows > 0; --rows, x += ld) {
    F squares[2] = {};
    const float* from = x;
    int64_t left = n;
    for (; left >= 4 * kLanes; left -= 4 * kLanes)
      LITE_UNROLL for (int i = 0; i < 2; i++) {
        F v[2];
        load_next(v, from);
        LITE_UNROLL for (int j = 0; j < 2; j++) squares[j] = fma(v[j], v[j], squares[j]);
      }
    for (; left > 0; left -= kLanes, from += kLanes) {
      const F v = load_part(from, static_cast<int>(left < kLanes ? left : kLanes));
      squares[0] = fma(v, v, squares[0]);
    }
    const float total = sum(squares[0] + squares[1]);
    if (!(total < kLargeSum)) return false;  // also for what is not a number
    least = total < least ? total : least;
    most = total > most ? total : most;
  }
  return most <= kUneven * least;
}

}  // namespace
}  // namespace lite::LITE_ISA
