#include "row_product.h"

#include <math.h>

namespace lite::LITE_ISA {
namespace {

alignas(64) constexpr float kNoAddend[kTileColumns] = {};

#if defined(LITE_PACKED_TILE)
// The rows to `packed`, [k][4] for every four of them, or for kQuadTile; the last row fills a four.
LITE_INLINE void pack_rows(const RowProduct& p, bool quads, float* packed) {
  const int64_t depth = product_depth(p.k);
  const int groups = (p.height + 3) / 4;
  const float* rows[kPackedRows];
  for (int m = 0; m < 4 * groups; m++) rows[m] = p.a + (m < p.height ? m : p.height - 1) * p.lda;
  if (quads) {
    pack_quads(rows, p.k, packed);
    return;
  }
  for (int j = 0; j < groups; j++) {
    float* to = pack_run(rows + 4 * j, p.k, packed + j * 4 * depth);
    for (int64_t k = p.k; k < depth; k++, to += kLanes) store(to, F{});
  }
}
#endif

}  // namespace

#if defined(LITE_PACKED_TILE)
void multiply_rows(const RowProduct& p, bool reorders, float* packed) {
  const bool quads = reorders && p.height == kPackedRows && p.k % 4 == 0;
  pack_rows(p, quads, packed);
  PackedTile t{};
  t.a = packed;
  t.k = product_depth(p.k);
  t.group = 4 * t.k;
  t.tiles = 1;
  t.rows = p.height;
  // Tiles without loads of four registers would begin with a product: -0 where others have 0.
  t.bias = quads ? nullptr : kNoAddend;
  t.lo = -INFINITY;
  t.hi = INFINITY;
  t.ldc = t.ldr = p.ldc;
  t.w = p.w;
  for (int64_t column = 0; column < p.columns; column += kTileColumns, t.w += p.panel) {
    const int64_t left = p.columns - column;
    t.columns = static_cast<int32_t>(left < kTileColumns ? left : kTileColumns);
    t.c = p.c + column;
    t.residual = p.adds ? t.c : nullptr;
    t.tasks = tasks_of(t, p.adds, false);
    const int vectors = tile_vectors(left);
    (quads ? kQuadTile[vectors - 1] : rest_tile(vectors, p.height, reorders))(t);
  }
}
#else
void multiply_rows(const RowProduct& p, bool, float*) {
  Tile t{};
  t.taps_y = t.taps_x = 1;
  t.a = p.a;
  t.lda = p.lda;
  t.k = p.k;
  t.bias = kNoAddend;
  t.lo = -INFINITY;
  t.hi = INFINITY;
  t.ldc = t.ldr = p.ldc;
  t.w = p.w;
  for (int64_t column = 0; column < p.columns; column += kTileColumns, t.w += p.panel) {
    const int64_t left = p.columns - column;
    const int vectors = tile_vectors(left);
    t.columns = static_cast<int32_t>(left < kTileColumns ? left : kTileColumns);
    t.ldw = vectors * kLanes;
    t.c = p.c + column;
    t.residual = p.adds ? t.c : nullptr;
    kTile[vectors - 1][p.height - 1](t);
  }
}
#endif

}  // namespace lite::LITE_ISA
