#include "packed_tile.h"

#include <math.h>

#include "activation.h"

#if defined(LITE_PACKED_TILE)

namespace lite::LITE_ISA {
namespace {

// NOTE: the asm keeps the order of the source, for cores that issue in order: every load stands at
// least eight multiplications before its use. The tile fills all 32 registers.
LITE_INLINE void load_pair(F& first, F& second, const float*& p) {
  asm volatile("ldp %q0, %q1, [%2], 32" : "=w"(first), "=w"(second), "+r"(p));
}

template <int kLane>
LITE_INLINE void multiply_add(F& sum, F w, F x) {
  asm volatile("fmla %0.4s, %1.4s, %2.s[%3]" : "+w"(sum) : "w"(w), "w"(x), "i"(kLane));
}

// Up to four rows against one row of W; rows from kRows on are not there.
template <int kFirst, int kRows, int kVectors>
LITE_INLINE void four_rows(F (&acc)[kRows][kVectors], F x, const F (&w)[2]) {
  LITE_UNROLL for (int n = 0; n < kVectors; n++) {
    if constexpr (kFirst < kRows) multiply_add<0>(acc[kFirst][n], w[n], x);
  }
  LITE_UNROLL for (int n = 0; n < kVectors; n++) {
    if constexpr (kFirst + 1 < kRows) multiply_add<1>(acc[kFirst + 1][n], w[n], x);
  }
  LITE_UNROLL for (int n = 0; n < kVectors; n++) {
    if constexpr (kFirst + 2 < kRows) multiply_add<2>(acc[kFirst + 2][n], w[n], x);
  }
  LITE_UNROLL for (int n = 0; n < kVectors; n++) {
    if constexpr (kFirst + 3 < kRows) multiply_add<3>(acc[kFirst + 3][n], w[n], x);
  }
}

// What finish() does where columns are missing; sums[rows][vectors * kLanes].
__attribute__((noinline)) void finish_part(const PackedTile& t, const float* sums, int rows,
                                           int vectors) {
  const F lo = splat(t.lo), hi = splat(t.hi);
  for (int m = 0; m < rows; m++) {
    for (int n = 0; n < vectors * kLanes; n += kLanes, sums += kLanes) {
      const int left = t.columns - n < kLanes ? t.columns - n : kLanes;
      F v = load(sums);
      if (t.residual) v += load_part(t.residual[m] + t.channel + n, left);
      v = t.hard_swish ? activate_vector<Act::kHardSwish>(v, lo, hi) : min(hi, max(lo, v));
      store_part(t.c[m] + t.channel + n, v, left);
    }
  }
}

template <int kRows, int kVectors>
LITE_INLINE void finish(const PackedTile& t, F (&acc)[kRows][kVectors]) {
  if (t.columns != kVectors * kLanes) {
    float sums[kRows][kVectors * kLanes];
    LITE_UNROLL for (int m = 0; m < kRows; m++)
      LITE_UNROLL for (int n = 0; n < kVectors; n++) store(sums[m] + n * kLanes, acc[m][n]);
    return finish_part(t, sums[0], kRows, kVectors);
  }
  const ptrdiff_t channel = t.channel;
  const F lo = splat(t.lo), hi = splat(t.hi);
  if (t.residual) {
    LITE_UNROLL for (int m = 0; m < kRows; m++)
      LITE_UNROLL for (int n = 0; n < kVectors; n++)
        acc[m][n] += load(t.residual[m] + channel + n * kLanes);
  }
  if (t.hard_swish) {
    LITE_UNROLL for (int m = 0; m < kRows; m++)
      LITE_UNROLL for (int n = 0; n < kVectors; n++)
        acc[m][n] = activate_vector<Act::kHardSwish>(acc[m][n], lo, hi);
  }
  if (t.lo != -INFINITY) {
    LITE_UNROLL for (int m = 0; m < kRows; m++)
      LITE_UNROLL for (int n = 0; n < kVectors; n++) acc[m][n] = max(lo, acc[m][n]);
  }
  if (t.hi != INFINITY) {
    LITE_UNROLL for (int m = 0; m < kRows; m++)
      LITE_UNROLL for (int n = 0; n < kVectors; n++) acc[m][n] = min(hi, acc[m][n]);
  }
  float* const* rows = t.c;
  LITE_UNROLL for (int m = 0; m < kRows; m++) {
    float* c = rows[m] + channel;
    LITE_UNROLL for (int n = 0; n < kVectors; n++) store(c + n * kLanes, acc[m][n]);
  }
}

template <int kRows, int kVectors>
void tile(const PackedTile& t) {
  constexpr bool kTwo = kRows > 4, kOdd = kRows <= 4 || kRows > 8;   // which parts A has
  constexpr int kHigh = kTwo ? 8 : 0;                            // first row of the odd group
  F acc[kRows][kVectors];
  LITE_UNROLL for (int n = 0; n < kVectors; n++) {
    const F b = load(t.bias + n * kLanes);
    LITE_UNROLL for (int m = 0; m < kRows; m++) acc[m][n] = b;
  }
  const float* w = t.w;
  const float* low = t.a;
  const float* high = kTwo ? t.a + 8 * t.k : t.a;
  F x[2], y[2], b[2], b1[2];   // rows 0-3 and 4-7; 8-11 of two k; W of two k
  load_pair(b[0], b[1], w);
  if (kTwo) load_pair(x[0], x[1], low);
  if (kOdd) load_pair(y[0], y[1], high);
  const auto two_k = [&]() __attribute__((always_inline)) {
    if (kVectors == 2) load_pair(b1[0], b1[1], w);
    else b1[0] = b[1];
    if (kTwo) {
      four_rows<0>(acc, x[0], b);
      four_rows<4>(acc, x[1], b);
      load_pair(x[0], x[1], low);
    }
    if (kOdd) four_rows<kHigh>(acc, y[0], b);
    if (kVectors == 2) load_pair(b[0], b[1], w);
    if (kTwo) {
      four_rows<0>(acc, x[0], b1);
      four_rows<4>(acc, x[1], b1);
      load_pair(x[0], x[1], low);
    }
    if (kOdd) {
      four_rows<kHigh>(acc, y[1], b1);
      load_pair(y[0], y[1], high);
    }
    if (kVectors == 1) load_pair(b[0], b[1], w);
  };
  if (t.k & 4) {
    two_k();
    two_k();
  }
  for (int64_t eights = t.k / 8; eights > 0; eights--)
    LITE_UNROLL for (int i = 0; i < 4; i++) two_k();
  finish(t, acc);
}

}  // namespace

#define LITE_TILES(v)                                                                          \
  {                                                                                            \
    tile<1, v>, tile<2, v>, tile<3, v>, tile<4, v>, tile<5, v>, tile<6, v>, tile<7, v>,         \
        tile<8, v>, tile<9, v>, tile<10, v>, tile<11, v>, tile<12, v>                          \
  }

const PackedTileFn kPackedTile[2][kPackedRows] = {LITE_TILES(1), LITE_TILES(2)};

}  // namespace lite::LITE_ISA

#endif
