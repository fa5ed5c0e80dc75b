// The register tile of AArch64 for rows of A that were packed: 12 rows x 8 columns.
//
// Packing lets one load bring four rows of A, where the tile of f32_tile.h needs one load for each
// row. Groups of four rows lie as [k][8] for every two groups, then [k][4] for an odd one:
//
//   C[m][n] = f(bias[n] + R[m][n] + sum over k of A[k][m] * W[k][n])
//
// Rows of C and R are given by pointers: a tile may hold the pixels of several image rows.
#pragma once

#include "f32_tile.h"

namespace lite::LITE_ISA {

#if defined(__aarch64__) && !defined(LITE_PAIRS)
#define LITE_PACKED_TILE
constexpr int kPackedRows = 12;
#else
constexpr int kPackedRows = 0;   // no such tile
#endif
// Loads run ahead: so many floats behind A and W must be readable.
constexpr int kPackedSlack = 16;

struct PackedTile {
  const float* a;
  int64_t k;                       // a positive multiple of 4
  const float* w;                  // [k][4 * vectors]
  const float* bias;               // kTileColumns readable floats
  float* const* c;                 // rows of C and
  const float* const* residual;    // of R, or nullptr; their element `channel` comes first
  ptrdiff_t channel;
  float lo, hi;
  int32_t columns;                 // valid ones
  bool hard_swish;                 // instead of the clamp
};

#if defined(LITE_PACKED_TILE)
using PackedTileFn = void (*)(const PackedTile&);
// kPackedTile[vectors - 1][rows - 1]
extern const PackedTileFn kPackedTile[2][kPackedRows];
#endif

}  // namespace lite::LITE_ISA
