// The additions of Strassen's scheme, of matrices in four quarters, and which factors its products take.
#pragma once

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

// The sums of rows of `height` by `width` numbers a quarter, `size` apart, by rows of ld.
LITE_INLINE void add_rows(Quarters<const float> a, int64_t height, int64_t width, float* sums, int64_t ld,
                          int64_t size) {
  const auto step = [=](const float* first, float* to, auto read, auto write) __attribute__((always_inline)) {
    const F a11 = read(first), a12 = read(first + a.across), a21 = read(first + a.down);
    const F s1 = a21 + read(first + a.down + a.across), s2 = s1 - a11;
    write(to, s1);
    write(to + size, s2);
    write(to + 2 * size, a11 - a21);
    write(to + 3 * size, a12 - s2);
  };
  for (int64_t m = 0; m < height; ++m, a.at += a.ld, sums += ld) {
    int64_t i = 0;
    for (; i + kLanes <= width; i += kLanes)
      step(a.at + i, sums + i, [](const float* p) { return load(p); }, [](float* p, F v) { store(p, v); });
    if (const int rest = kPacks ? 0 : static_cast<int>(width - i))  // packed in fours
      step(a.at + i, sums + i, [=](const float* p) { return load_part(p, rest); },
           [=](float* p, F v) { store_part(p, v, rest); });
  }
}

LITE_INLINE void load_row(F (&v)[2], const float* p) {
#if defined(LITE_PACKED_TILE)
  load_pair_at(v[0], v[1], p);
#else
  LITE_UNROLL for (int n = 0; n < 2; n++) v[n] = load(p + n * kLanes);
#endif
}
LITE_INLINE void store_row(float* p, F first, F second) {
#if defined(LITE_PACKED_TILE)
  store_pair(p, first, second);
#else
  store(p, first);
  store(p + kLanes, second);
#endif
}

// Of `depth` rows of a left and a right panel, above and below; the sums lie `size` apart.
LITE_INLINE void add_weights(int64_t depth, const float* const (&w)[2][2], float* sums, int64_t size) {
  for (int64_t i = 0; i < depth * kTileColumns; i += kTileColumns, sums += kTileColumns) {
    F b11[2], b12[2], b21[2], b22[2], t1[2], t2[2];
    load_row(b11, w[0][0] + i);
    load_row(b12, w[0][1] + i);
    load_row(b21, w[1][0] + i);
    load_row(b22, w[1][1] + i);
    LITE_UNROLL for (int n = 0; n < 2; n++) {
      t1[n] = b12[n] - b11[n];
      t2[n] = b22[n] - t1[n];
    }
    store_row(sums, t1[0], t1[1]);
    store_row(sums + size, t2[0], t2[1]);
    store_row(sums + 2 * size, b22[0] - b12[0], b22[1] - b12[1]);
    store_row(sums + 3 * size, t2[0] - b21[0], t2[1] - b21[1]);
  }
}

// Sums of the products, `size` apart by rows of ld, to `height` rows and one panel of each quarter of c.
template <bool kMore>
LITE_INLINE void combine(const float* products, int64_t ld, int64_t size, int64_t height,
                         const float* const (&bias)[2], Quarters<const float> more, Quarters<float> c, F lo,
                         F hi) {
  const auto finish = [&](F v, float* to, const float* add) __attribute__((always_inline)) {
    if (kMore) v += load(add);
    store(to, min(hi, max(lo, v)));
  };
  for (int j = 0; j < kTileColumns; j += kLanes) {
    const F b1 = load(bias[0] + j), b2 = load(bias[1] + j);
    const float *from = products + j, *add = more.at + j;
    float* to = c.at + j;
    for (int64_t i = 0; i < height; ++i, from += ld, to += c.ld, add += more.ld) {
      const F p1 = load(from), p5 = load(from + 4 * size);
      const F u2 = p1 + load(from + 5 * size), u3 = u2 + load(from + 6 * size), u4 = u2 + p5;
      finish(p1 + load(from + size) + b1, to, add);
      finish(u4 + load(from + 2 * size) + b2, to + c.across, add + more.across);
      finish(u3 - load(from + 3 * size) + b1, to + c.down, add + more.down);
      finish(u3 + p5 + b2, to + c.down + c.across, add + more.down + more.across);
    }
  }
}

// Additions must not overflow: rows of larger numbers, and of what is not finite, are multiplied plainly.
constexpr float kLargeSum = 1e30f;

// Whether `rows` rows of n numbers may be added to others: they are finite, and their sums do not overflow.
inline bool rows_may_be_added(const float* x, int64_t ld, int64_t rows, int64_t n) {
  F sizes = F{};
  for (; rows > 0; --rows, x += ld) {
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) sizes += abs(load(x + i));
    if (i < n) sizes += abs(load_part(x + i, static_cast<int>(n - i)));
  }
  float lanes[kLanes], total = 0;
  store(lanes, sizes);
  for (const float lane : lanes) total += lane;
  return total < kLargeSum;         // false for what is not a number
}

}  // namespace
}  // namespace lite::LITE_ISA
