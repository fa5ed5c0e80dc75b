// The register tile of AArch64 for rows of A that were packed: 12 rows x 8 columns.
//
// Packing lets one load bring four rows of A, where the tile of f32_tile.h needs one load for each
// row. Groups of four rows lie as [k][8] for every two groups, then [k][4] for an odd one:
//
//   C[m][n] = f(bias[n] + R[m][n] + sum over k of A[k][m] * W[k][n])
//
// Tiles of one height that meet the same W follow each other in one call. Rows of C and R lie
// evenly, or, of the pixels of several image rows, are given by pointers.
#pragma once

#include <math.h>

#include "f32_tile.h"
#include "transpose.h"

namespace lite::LITE_ISA {

#if defined(__aarch64__) && !defined(LITE_FP16)
#define LITE_PACKED_TILE
constexpr bool kPacks = true;
#else
constexpr bool kPacks = false;  // no such tile
#endif
constexpr int kPackedRows = 12;
// Loads run ahead: so many floats behind A and W must be readable.
constexpr int kPackedSlack = 16;

struct PackedTile {
  const float* a;
  ptrdiff_t a_next;                // floats from one tile to the next
  int64_t tiles;                   // at least 1
  int64_t k;                       // a positive multiple of 4
  const float* w;                  // [k][4 * vectors]
  const float* bias;               // kTileColumns readable floats, or nullptr for zeros
  float* c;                        // row m of tile i is at c + (i * rows + m) * ldc
  ptrdiff_t ldc;
  const float* residual;           // the same with ldr, or nullptr
  ptrdiff_t ldr;
  float* const* c_rows;            // or nullptr: the rows of a single tile in place of c; their
  const float* const* residual_rows;  // element `channel` comes first
  ptrdiff_t channel;
  float lo, hi;
  int32_t columns;                 // valid ones
  bool hard_swish;                 // instead of the clamp
  uint32_t tasks;                  // tasks_of what is above
};

// What follows a tile's sums, asked once for many tiles.
constexpr uint32_t kPart = 1, kResidual = 2, kHardSwish = 4, kLow = 8, kHigh = 16;
LITE_INLINE uint32_t tasks_of(const PackedTile& t, bool residual, bool rows_apart) {
  const bool part = rows_apart || t.columns % kLanes != 0;
  return (part ? kPart : 0u) | (residual ? kResidual : 0u) | (t.hard_swish ? kHardSwish : 0u) |
         (t.lo != -INFINITY ? kLow : 0u) | (t.hi != INFINITY ? kHigh : 0u);
}

#if defined(LITE_PACKED_TILE)
using PackedTileFn = void (*)(const PackedTile&);
// kPackedTile[vectors - 1][rows - 1]
extern const PackedTileFn kPackedTile[2][kPackedRows];

// Where the next k of a tile is written: every two groups of rows, and an odd one.
struct PackedAt {
  float* low;
  float* high;
};

LITE_INLINE void load_pair(F& first, F& second, const float*& p) {
  asm volatile("ldp %q0, %q1, [%2], 32" : "=w"(first), "=w"(second), "+r"(p));
}
template <int kOffset>  // bytes
LITE_INLINE void store_pair(float* p, F first, F second) {
  asm volatile("stp %q0, %q1, [%2, %3]" ::"w"(first), "w"(second), "r"(p), "i"(kOffset) : "memory");
}

// Four or eight floats of four rows to [k][4]. By llvm-mca st4 takes no longer than the shuffles
// that it replaces, on a cortex-a53 half as long.
LITE_INLINE void pack_four_k(const float** p, float*& to) {
  asm volatile(
      "ldr q0, [%0], 16\n\tldr q1, [%1], 16\n\tldr q2, [%2], 16\n\tldr q3, [%3], 16\n\t"
      "st4 {v0.4s, v1.4s, v2.4s, v3.4s}, [%4], 64"
      : "+r"(p[0]), "+r"(p[1]), "+r"(p[2]), "+r"(p[3]), "+r"(to)::"v0", "v1", "v2", "v3", "memory");
}
LITE_INLINE void pack_eight_k(const float** p, float*& to) {
  asm volatile(
      "ldp q0, q4, [%0], 32\n\tldp q1, q5, [%1], 32\n\tldp q2, q6, [%2], 32\n\tldp q3, q7, [%3], 32\n\t"
      "st4 {v0.4s, v1.4s, v2.4s, v3.4s}, [%4], 64\n\tst4 {v4.4s, v5.4s, v6.4s, v7.4s}, [%4], 64"
      : "+r"(p[0]), "+r"(p[1]), "+r"(p[2]), "+r"(p[3]), "+r"(to)::"v0", "v1", "v2", "v3", "v4", "v5",
        "v6", "v7", "memory");
}

// Four k of eight rows to [k][8].
LITE_INLINE void store_four_k(F (&first)[4], F (&second)[4], float* to) {
  transpose(first);
  transpose(second);
  store_pair<0>(to, first[0], second[0]);
  store_pair<32>(to, first[1], second[1]);
  store_pair<64>(to, first[2], second[2]);
  store_pair<96>(to, first[3], second[3]);
}

// n floats of every row of `kGroups` times four.
template <int kGroups>
LITE_INLINE PackedAt pack_run(const float* const* rows, int64_t n, PackedAt at) {
  constexpr bool kTwo = kGroups >= 2, kOdd = kGroups % 2 == 1;
  constexpr int kHigh = kTwo ? 8 : 0;
  const float* p[4 * kGroups];
  LITE_UNROLL for (int m = 0; m < 4 * kGroups; m++) p[m] = rows[m];
  int64_t left = n;
  for (; left >= 8; left -= 8) {
    if (kTwo) {
      F x[4], x2[4], y[4], y2[4];
      LITE_UNROLL for (int m = 0; m < 4; m++) load_pair(x[m], x2[m], p[m]);
      LITE_UNROLL for (int m = 0; m < 4; m++) load_pair(y[m], y2[m], p[4 + m]);
      store_four_k(x, y, at.low);
      store_four_k(x2, y2, at.low + 32);
      at.low += 64;
    }
    if (kOdd) pack_eight_k(p + kHigh, at.high);
  }
  if (left >= 4) {
    left -= 4;
    if (kTwo) {
      F x[4], y[4];
      LITE_UNROLL for (int m = 0; m < 4; m++) x[m] = load(p[m]);
      LITE_UNROLL for (int m = 0; m < 4; m++) y[m] = load(p[4 + m]);
      LITE_UNROLL for (int m = 0; m < 8; m++) p[m] += 4;
      store_four_k(x, y, at.low);
      at.low += 32;
    }
    if (kOdd) pack_four_k(p + kHigh, at.high);
  }
  for (int64_t k = 0; k < left; k++) {
    if (kTwo) {
      LITE_UNROLL for (int m = 0; m < 8; m++) at.low[m] = p[m][k];
      at.low += 8;
    }
    if (kOdd) {
      LITE_UNROLL for (int m = 0; m < 4; m++) at.high[m] = p[kHigh + m][k];
      at.high += 4;
    }
  }
  return at;
}
#endif

}  // namespace lite::LITE_ISA
