#include "packed_tile.h"

#include <math.h>

#include <type_traits>

#include "activation.h"

#if defined(LITE_PACKED_TILE)

#if !defined(__clang__)
// The tile fills all registers: constants kept over the tiles of a run would cost some of them.
#pragma GCC optimize("no-move-loop-invariants")
#endif

namespace lite::LITE_ISA {
namespace {

// NOTE: the asm keeps the order of the source, for cores that issue in order: every load stands at
// least eight multiplications before its use. The tile fills all 32 registers.
//
// kStart: sums begin here.
template <int kLane, bool kStart>
LITE_INLINE void multiply_add(F& sum, F w, F x) {
  if (kStart) asm volatile("fmul %0.4s, %1.4s, %2.s[%3]" : "=w"(sum) : "w"(w), "w"(x), "i"(kLane));
  else asm volatile("fmla %0.4s, %1.4s, %2.s[%3]" : "+w"(sum) : "w"(w), "w"(x), "i"(kLane));
}

// Up to four rows against one row of W; rows from kRows on are not there.
template <int kFirst, bool kStart, int kRows, int kVectors>
LITE_INLINE void four_rows(F (&acc)[kRows][kVectors], F x, const F (&w)[2]) {
  LITE_UNROLL for (int n = 0; n < kVectors; n++) {
    if constexpr (kFirst < kRows) multiply_add<0, kStart>(acc[kFirst][n], w[n], x);
  }
  LITE_UNROLL for (int n = 0; n < kVectors; n++) {
    if constexpr (kFirst + 1 < kRows) multiply_add<1, kStart>(acc[kFirst + 1][n], w[n], x);
  }
  LITE_UNROLL for (int n = 0; n < kVectors; n++) {
    if constexpr (kFirst + 2 < kRows) multiply_add<2, kStart>(acc[kFirst + 2][n], w[n], x);
  }
  LITE_UNROLL for (int n = 0; n < kVectors; n++) {
    if constexpr (kFirst + 3 < kRows) multiply_add<3, kStart>(acc[kFirst + 3][n], w[n], x);
  }
}

// What finish() does for tiles that are not whole or not even; sums[rows][vectors * kLanes].
__attribute__((noinline)) void finish_part(const PackedTile& t, const float* sums, int rows,
                                           int vectors, float* c, const float* residual) {
  const F lo = splat(t.lo), hi = splat(t.hi);
  for (int m = 0; m < rows; m++) {
    float* to = t.c_rows ? t.c_rows[m] + t.channel : c + m * t.ldc;
    const float* r = t.residual_rows ? t.residual_rows[m] + t.channel
                     : residual      ? residual + m * t.ldr
                                     : nullptr;
    for (int n = 0; n < vectors * kLanes; n += kLanes, sums += kLanes) {
      const int left = t.columns - n < kLanes ? t.columns - n : kLanes;
      F v = load(sums);
      if (r) v += load_part(r + n, left);
      v = t.hard_swish ? activate_vector<Act::kHardSwish>(v, lo, hi) : min(hi, max(lo, v));
      store_part(to + n, v, left);
    }
  }
}

template <int kRows, int kVectors>
LITE_INLINE void finish(const PackedTile& t, F (&acc)[kRows][kVectors], float* c,
                        const float* residual) {
  const uint32_t tasks = t.tasks;
  // The other heights end a run of tiles: they may cost more here and take less room.
  if (kRows % 4 != 0 || tasks & kPart) {
    float sums[kRows][kVectors * kLanes];
    LITE_UNROLL for (int m = 0; m < kRows; m++)
      LITE_UNROLL for (int n = 0; n < kVectors; n++) store(sums[m] + n * kLanes, acc[m][n]);
    return finish_part(t, sums[0], kRows, kVectors, c, residual);
  }
  const F lo = splat(t.lo), hi = splat(t.hi);
  if (tasks & kResidual) {
    LITE_UNROLL for (int m = 0; m < kRows; m++)
      LITE_UNROLL for (int n = 0; n < kVectors; n++)
        acc[m][n] += load(residual + m * t.ldr + n * kLanes);
  }
  if (tasks & kHardSwish) {
    LITE_UNROLL for (int m = 0; m < kRows; m++)
      LITE_UNROLL for (int n = 0; n < kVectors; n++)
        acc[m][n] = activate_vector<Act::kHardSwish>(acc[m][n], lo, hi);
  }
  if (tasks & kLow) {
    LITE_UNROLL for (int m = 0; m < kRows; m++)
      LITE_UNROLL for (int n = 0; n < kVectors; n++) acc[m][n] = max(lo, acc[m][n]);
  }
  if (tasks & kHigh) {
    LITE_UNROLL for (int m = 0; m < kRows; m++)
      LITE_UNROLL for (int n = 0; n < kVectors; n++) acc[m][n] = min(hi, acc[m][n]);
  }
  const ptrdiff_t ldc = t.ldc;
  LITE_UNROLL for (int m = 0; m < kRows; m++, c += ldc)
    LITE_UNROLL for (int n = 0; n < kVectors; n++) store(c + n * kLanes, acc[m][n]);
}

template <int kRows, int kVectors>
void tile(const PackedTile& t) {
  constexpr bool kTwo = kRows > 4, kOdd = kRows <= 4 || kRows > 8;   // which parts A has
  constexpr int kHigh = kTwo ? 8 : 0;                            // first row of the odd group
  const float* a = t.a;
  float* c = t.c;
  const float* residual = t.residual;
  for (int64_t tiles = t.tiles; tiles > 0; tiles--) {
    F acc[kRows][kVectors];
    const float* w = t.w;
    const float* low = a;
    const float* high = kTwo ? a + 8 * t.k : a;
    F x[2], y[2], b[2], b1[2];   // rows 0-3 and 4-7; 8-11 of two k; W of two k
    load_pair(b[0], b[1], w);
    if (kTwo) load_pair(x[0], x[1], low);
    if (kOdd) load_pair(y[0], y[1], high);
    const auto two_k = [&](auto start) __attribute__((always_inline)) {
      if (kVectors == 2) load_pair(b1[0], b1[1], w);
      else b1[0] = b[1];
      if (kTwo) {
        four_rows<0, start()>(acc, x[0], b);
        four_rows<4, start()>(acc, x[1], b);
        load_pair(x[0], x[1], low);
      }
      if (kOdd) four_rows<kHigh, start()>(acc, y[0], b);
      if (kVectors == 2) load_pair(b[0], b[1], w);
      if (kTwo) {
        four_rows<0, false>(acc, x[0], b1);
        four_rows<4, false>(acc, x[1], b1);
        load_pair(x[0], x[1], low);
      }
      if (kOdd) {
        four_rows<kHigh, false>(acc, y[1], b1);
        load_pair(y[0], y[1], high);
      }
      if (kVectors == 1) load_pair(b[0], b[1], w);
    };
    if (t.bias) {
      LITE_UNROLL for (int n = 0; n < kVectors; n++) {
        const F v = load(t.bias + n * kLanes);
        LITE_UNROLL for (int m = 0; m < kRows; m++) acc[m][n] = v;
      }
      two_k(std::false_type{});
    } else {
      two_k(std::true_type{});
    }
    two_k(std::false_type{});
    if (!(t.k & 4)) {
      two_k(std::false_type{});
      two_k(std::false_type{});
    }
    for (int64_t eights = (t.k - 4) / 8; eights > 0; eights--)
      LITE_UNROLL for (int i = 0; i < 4; i++) two_k(std::false_type{});
    finish(t, acc, c, residual);
    a += t.a_next;
    c += kRows * t.ldc;
    if (residual) residual += kRows * t.ldr;
  }
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
