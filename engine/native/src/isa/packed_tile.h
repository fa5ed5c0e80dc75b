// The register tile of AArch64 for rows of A that were packed: 12 rows x 8 columns.
//
// Packing lets one load bring four rows of A, where the tile of f32_tile.h needs one load for each
// row. Groups of four rows follow each other, each as [k][4]:
//
//   C[m][n] = f(bias[n] + R[m][n] + sum over k of A[k][m] * W[k][n])
//
// Tiles of one height that meet the same W follow each other in one call. Rows of C and R lie
// evenly, or, of the pixels of several image rows, are given by pointers.
#pragma once

#include <math.h>

#include "activation.h"
#include "f32_tile.h"

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
  ptrdiff_t group;                 // floats from one group of four rows to the next
  ptrdiff_t a_k;                   // floats from one k to the next
  ptrdiff_t a_next;                // floats from one tile to the next
  int64_t tiles;                   // at least 1; then all rows of them are valid
  int32_t rows;                    // valid ones
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

// `fn` in parts of k, as multiply_tile has them.
void multiply_packed_tile(PackedTileFn fn, const PackedTile& t);

// What follows the sums[row][vectors * kLanes] of a tile that is not whole or not even; c and residual
// are those of this tile.
void finish_part(const PackedTile& t, const float* sums, int vectors, float* c,
                 const float* residual);

// What follows the sums of a tile of kRows, of which t.rows are valid.
template <int kRows, int kVectors>
LITE_INLINE void finish_tile(const PackedTile& t, F (&acc)[kRows][kVectors], float* c,
                        const float* residual) {
  const uint32_t tasks = t.tasks;
  // The other heights end a run of tiles: they may cost more here and take less room.
  if (kRows % 4 != 0 || t.rows != kRows || tasks & kPart) {
    float sums[kRows][kVectors * kLanes];
    LITE_UNROLL for (int m = 0; m < kRows; m++)
      LITE_UNROLL for (int n = 0; n < kVectors; n++) store(sums[m] + n * kLanes, acc[m][n]);
    return finish_part(t, sums[0], kVectors, c, residual);
  }
  const F lo = splat(t.lo), hi = splat(t.hi);
  if (tasks & kResidual) {
    LITE_UNROLL for (int m = 0; m < kRows; m++, residual += t.ldr) {
      if constexpr (kVectors == 2) {
        F first, second;
        load_pair_at(first, second, residual);
        acc[m][0] += first;
        acc[m][1] += second;
      } else {
        acc[m][0] += load(residual);
      }
    }
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
  LITE_UNROLL for (int m = 0; m < kRows; m++, c += ldc) {
    if constexpr (kVectors == 2) store_pair(c, acc[m][0], acc[m][1]);
    else store(c, acc[m][0]);
  }
}

// One, four or eight floats of four rows to [k][4]. By llvm-mca st4 takes no longer than the shuffles
// that it replaces, on a cortex-a53 half as long.
LITE_INLINE void pack_one_k(const float** p, float*& to) {
  asm volatile(
      "ld1 {v0.s}[0], [%0], 4\n\tld1 {v0.s}[1], [%1], 4\n\tld1 {v0.s}[2], [%2], 4\n\t"
      "ld1 {v0.s}[3], [%3], 4\n\tstr q0, [%4], 16"
      : "+r"(p[0]), "+r"(p[1]), "+r"(p[2]), "+r"(p[3]), "+r"(to)::"v0", "memory");
}
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

// n floats of each of four rows. Where the next ones belong.
LITE_INLINE float* pack_run(const float* const* rows, int64_t n, float* to) {
  const float* p[4] = {rows[0], rows[1], rows[2], rows[3]};
  for (; n >= 8; n -= 8) pack_eight_k(p, to);
  if (n >= 4) {
    n -= 4;
    pack_four_k(p, to);
  }
  for (; n > 0; n--) pack_one_k(p, to);
  return to;
}
#endif

}  // namespace lite::LITE_ISA
