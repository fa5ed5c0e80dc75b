// A few rows times panels of columns, both computed by the model: by the tile of f32_tile.h, or by that of
// packed_tile.h, for which the rows are packed first.
//
//   C[m][n] = (adds ? C[m][n] : 0) + sum over k of A[m][k] W[k][n]
#pragma once

#include "quad_tile.h"

namespace lite::LITE_ISA {

constexpr int kProductRows = kPacks ? kPackedRows : kTileRows;  // at most
// W has a multiple of so many k: zeros behind the last one.
constexpr int kProductStep = kPacks ? 4 : 1;

LITE_INLINE int64_t product_depth(int64_t k) {
  return (k + kProductStep - 1) / kProductStep * kProductStep;
}
// Floats that the packed rows take.
LITE_INLINE int64_t product_floats(int64_t k) {
  return kPacks ? kPackedRows * product_depth(k) + kPackedSlack : 0;
}

// The next of `rows`, all of which are to be walked: few blocks, of nearly equal height where a low
// one costs more for each row.
LITE_INLINE int product_rows(int64_t rows) {
  if (kPacks) return static_cast<int>(rows < kProductRows ? rows : kProductRows);
  const int64_t blocks = (rows + kProductRows - 1) / kProductRows;
  return static_cast<int>((rows + blocks - 1) / blocks);
}

struct RowProduct {
  const float* a;
  int64_t lda;
  int height;                      // 1 to kProductRows
  int64_t k;
  const float* w;                  // [panel][product_depth(k)][columns, in whole vectors]
  int64_t panel;                   // floats from one panel, of kTileColumns, to the next
  float* c;
  int64_t ldc;
  int64_t columns;
  bool adds;
};

// `reorders`: the core does (core_kind.h). `packed`: room for product_floats(k).
void multiply_rows(const RowProduct&, bool reorders, float* packed);

}  // namespace lite::LITE_ISA
