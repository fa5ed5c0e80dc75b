// The tile of 12 packed rows for cores that reorder: every load brings four registers.
//
// Half as many loads as packed_tile.h, but no free registers to load ahead into. Of four k, rows 0 to 7
// lie as pairs of k, so that eight rows of two k are one load:
//
//   [rows 0-7][k 0, 1], [k 0-3][rows 8-11], [rows 0-7][k 2, 3]
#pragma once

#include "packed_tile.h"

namespace lite::LITE_ISA {

#if defined(LITE_PACKED_TILE)
// kQuadTile[vectors - 1], of kPackedRows rows.
extern const PackedTileFn kQuadTile[2];
// Of the rows that are left, packed by pack_run; `quads`: on such a core.
PackedTileFn rest_tile(int vectors, int64_t rows, bool quads);

// n floats of each of twelve rows, a multiple of 4, in that order. Where the next ones belong.
float* pack_quads(const float* const* rows, int64_t n, float* to);
#endif

}  // namespace lite::LITE_ISA
