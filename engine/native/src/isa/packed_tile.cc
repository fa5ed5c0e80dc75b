#include "packed_tile.h"

#include <math.h>

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

// Two k of a group of rows, while its next one is loaded.
template <int kFirst, bool kStart, bool kLast, int kRows, int kVectors>
LITE_INLINE void group(F (&acc)[kRows][kVectors], const F (&now)[2], F (&next)[2],
                       const float*& from, F (&b)[2], const F (&b1)[2], const float*& w) {
  reload_pair(next[0], next[1], from);
  four_rows<kFirst, kStart>(acc, now[0], b);
  if (kLast && kVectors == 2) reload_pair(b[0], b[1], w);
  four_rows<kFirst, false>(acc, now[1], b1);
}

// Two k of a tile: `now` are of its first group, b of the first k. Groups take `now` and `next` in
// turn.
template <bool kStart, int kRows, int kVectors>
LITE_INLINE void two_k(F (&acc)[kRows][kVectors], F (&now)[2], F (&next)[2], F (&b)[2], F (&b1)[2],
                       const float*& w, const float* (&from)[(kRows + 3) / 4]) {
  constexpr int kGroups = (kRows + 3) / 4;
  if (kVectors == 2) reload_pair(b1[0], b1[1], w);
  else b1[0] = b[1];
  group<0, kStart, kGroups == 1>(acc, now, next, from[1 % kGroups], b, b1, w);
  if constexpr (kGroups > 1)
    group<4, kStart, kGroups == 2>(acc, next, now, from[2 % kGroups], b, b1, w);
  if constexpr (kGroups > 2) group<8, kStart, true>(acc, now, next, from[0], b, b1, w);
  if (kVectors == 1) reload_pair(b[0], b[1], w);
}

template <bool kStart, int kRows, int kVectors>
LITE_INLINE void four_k(F (&acc)[kRows][kVectors], F (&x)[2][2], F (&b)[2], F (&b1)[2],
                        const float*& w, const float* (&from)[(kRows + 3) / 4]) {
  constexpr int kOdd = (kRows + 3) / 4 % 2;
  two_k<kStart>(acc, x[0], x[1], b, b1, w, from);
  two_k<false>(acc, x[kOdd], x[1 - kOdd], b, b1, w, from);
}

template <int kRows, int kVectors>
void tile(const PackedTile& t) {
  constexpr int kGroups = (kRows + 3) / 4;
  const float* a = t.a;
  float* c = t.c;
  const float* residual = t.residual;
  for (int64_t tiles = t.tiles; tiles > 0; tiles--) {
    F acc[kRows][kVectors];
    const float* w = t.w;
    const float* from[kGroups];
    LITE_UNROLL for (int g = 0; g < kGroups; g++) from[g] = a + g * t.group;
    F x[2][2], b[2], b1[2];      // two k: of a group of rows and of the next one; of W
    load_pair(b[0], b[1], w);
    load_pair(x[0][0], x[0][1], from[0]);
    asm("" : "=w"(x[1][0]), "=w"(x[1][1]), "=w"(b1[0]), "=w"(b1[1]));  // any values
    if (t.bias) {
      LITE_UNROLL for (int n = 0; n < kVectors; n++) {
        const F v = load(t.bias + n * kLanes);
        LITE_UNROLL for (int m = 0; m < kRows; m++) acc[m][n] = v;
      }
      four_k<false>(acc, x, b, b1, w, from);
    } else {
      four_k<true>(acc, x, b, b1, w, from);
    }
    if (!(t.k & 4)) four_k<false>(acc, x, b, b1, w, from);
    for (int64_t eights = (t.k - 4) / 8; eights > 0; eights--)
      LITE_UNROLL for (int i = 0; i < 2; i++) four_k<false>(acc, x, b, b1, w, from);
    finish_tile(t, acc, c, residual);
    a += t.a_next;
    c += kRows * t.ldc;
    if (residual) residual += kRows * t.ldr;
  }
}

}  // namespace

void finish_part(const PackedTile& t, const float* sums, int vectors, float* c,
                 const float* residual) {
  const F lo = splat(t.lo), hi = splat(t.hi);
  const int columns = t.columns, rows = t.rows;
  const bool hard_swish = t.hard_swish, whole = vectors == 2 && columns == kTileColumns && !hard_swish;
  float* const* const to_rows = t.c_rows;
  const float* const* const residual_rows = t.residual_rows;
  const ptrdiff_t channel = t.channel, ldc = t.ldc, ldr = t.ldr;
  for (int m = 0; m < rows; m++, c += ldc) {
    float* to = to_rows ? to_rows[m] + channel : c;
    const float* r = residual_rows ? residual_rows[m] + channel
                     : residual    ? residual + m * ldr
                                   : nullptr;
    if (whole) {  // rows that lie apart
      F first = load(sums), second = load(sums + kLanes);
      sums += kTileColumns;
      if (r) {
        first += load(r);
        second += load(r + kLanes);
      }
      store(to, min(hi, max(lo, first)));
      store(to + kLanes, min(hi, max(lo, second)));
      continue;
    }
    for (int n = 0; n < vectors * kLanes; n += kLanes, sums += kLanes) {
      const int left = columns - n < kLanes ? columns - n : kLanes;
      F v = load(sums);
      if (r) v += load_part(r + n, left);
      v = hard_swish ? activate_vector<Act::kHardSwish>(v, lo, hi) : min(hi, max(lo, v));
      store_part(to + n, v, left);
    }
  }
}

void multiply_packed_tile(PackedTileFn fn, const PackedTile& whole) {
  if (whole.k <= kLongestSum) return fn(whole);
  const int64_t parts = (whole.k + kLongestSum - 1) / kLongestSum;
  const int64_t k = ((whole.k + parts - 1) / parts + 3) / 4 * 4;
  PackedTile t = whole;
  for (int64_t first = 0; first < whole.k; first += k) {
    const bool last = first + k >= whole.k;
    t.k = last ? whole.k - first : k;
    t.a = whole.a + first * whole.a_k;
    t.w = whole.w + first * tile_vectors(whole.columns) * kLanes;
    t.lo = last ? whole.lo : -INFINITY;
    t.hi = last ? whole.hi : INFINITY;
    t.hard_swish = last && whole.hard_swish;
    t.tasks = tasks_of(t, first > 0 || whole.tasks & kResidual, whole.c_rows);
    fn(t);
    t.bias = nullptr;
    t.residual = whole.c;
    t.residual_rows = whole.c_rows;
    t.ldr = whole.ldc;
  }
}

// A height in between takes the next one: its last row is computed for nothing.
#define LITE_TILES(v)                                                                            \
  {                                                                                              \
    tile<1, v>, tile<2, v>, tile<4, v>, tile<4, v>, tile<6, v>, tile<6, v>, tile<8, v>,           \
        tile<8, v>, tile<10, v>, tile<10, v>, tile<12, v>, tile<12, v>                           \
  }

const PackedTileFn kPackedTile[2][kPackedRows] = {LITE_TILES(1), LITE_TILES(2)};

}  // namespace lite::LITE_ISA

#endif
