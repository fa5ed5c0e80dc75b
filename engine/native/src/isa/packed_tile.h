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

#include "f32_tile.h"

namespace lite::LITE_ISA {

#if defined(__aarch64__) && !defined(LITE_HALVES)
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
};

#if defined(LITE_PACKED_TILE)
using PackedTileFn = void (*)(const PackedTile&);
// kPackedTile[vectors - 1][rows - 1]
extern const PackedTileFn kPackedTile[2][kPackedRows];

// Where the next k of a tile is written: every two groups of rows, and an odd one.
struct PackedAt {
  float* low;
  float* high;
};

LITE_INLINE void transpose(const float* const* p, int64_t k, F out[4]) {
  const float32x4_t a = vld1q_f32(p[0] + k), b = vld1q_f32(p[1] + k), c = vld1q_f32(p[2] + k),
                    d = vld1q_f32(p[3] + k);
  const float32x4_t ac = vzip1q_f32(a, c), bd = vzip1q_f32(b, d);
  const float32x4_t ac2 = vzip2q_f32(a, c), bd2 = vzip2q_f32(b, d);
  out[0] = (F)vzip1q_f32(ac, bd);
  out[1] = (F)vzip2q_f32(ac, bd);
  out[2] = (F)vzip1q_f32(ac2, bd2);
  out[3] = (F)vzip2q_f32(ac2, bd2);
}

// n floats of every row of `kGroups` times four.
template <int kGroups>
LITE_INLINE PackedAt pack_run(const float* const* rows, int64_t n, PackedAt at) {
  constexpr bool kTwo = kGroups >= 2, kOdd = kGroups % 2 == 1;
  constexpr int kHigh = kTwo ? 8 : 0;
  const float* p[4 * kGroups];
  LITE_UNROLL for (int m = 0; m < 4 * kGroups; m++) p[m] = rows[m];
  int64_t k = 0;
  for (; k + 4 <= n; k += 4) {
    if (kTwo) {
      F first[4], second[4];
      transpose(p, k, first);
      transpose(p + 4, k, second);
      LITE_UNROLL for (int i = 0; i < 4; i++) {
        store(at.low + 8 * i, first[i]);
        store(at.low + 8 * i + 4, second[i]);
      }
      at.low += 32;
    }
    if (kOdd) {
      F v[4];
      transpose(p + kHigh, k, v);
      LITE_UNROLL for (int i = 0; i < 4; i++) store(at.high + 4 * i, v[i]);
      at.high += 16;
    }
  }
  for (; k < n; k++) {
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
