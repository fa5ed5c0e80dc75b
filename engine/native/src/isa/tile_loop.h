// The loop nest that every strip-based kernel shares: blocks of tiles whose input stays in the
// second-level cache, then panels of weights, then the tiles of the block.
#pragma once

#include "ops/conv_strips.h"
#include "vec.h"

namespace lite::LITE_ISA {

// enter(panel) sets up a panel; tile(strip, j, ahead) computes tile j of a strip; ahead is the number
// of those tiles of a block, the first kAhead, that fetch a share of the next panel each, else -1.
template <int kAhead = 2, class Enter, class Body>
LITE_INLINE void for_each_tile(const StripList& list, const GridPart& range, int64_t block_tiles,
                               Enter enter, Body body) {
  const auto [tile_begin, tile_end, panel_begin, panel_end] = range;
  for (int64_t block = tile_begin; block < tile_end; block += block_tiles) {
    const int64_t block_end = block + block_tiles < tile_end ? block + block_tiles : tile_end;
    const Strip* first = strip_of(list, static_cast<int32_t>(block));
    for (int64_t panel = panel_begin; panel < panel_end; ++panel) {
      enter(panel);
      const bool prefetch = panel + 1 < panel_end && block_end - block > 1;
      const Strip* strip = first;
      int32_t j = static_cast<int32_t>(block) - strip->first_tile;
      for (int64_t tile = block; tile < block_end; ++tile, ++j) {
        if (j == strip->tiles) {
          ++strip;
          j = 0;
        }
        body(*strip, j, prefetch && tile - block < kAhead ? static_cast<int>(tile - block) : -1);
      }
    }
  }
}

// Tiles per block: their input and one panel of output take two fifths of the cache.
LITE_INLINE int32_t tiles_per_block(const StripList& list, double input_bytes, double output_bytes,
                                    size_t l2_bytes) {
  const double per_tile = (input_bytes + output_bytes) / (list.tiles ? list.tiles : 1) + 1;
  const double block = 0.4 * static_cast<double>(l2_bytes) / per_tile;
  return block < 1 ? 1 : block > list.tiles ? list.tiles : static_cast<int32_t>(block);
}

}  // namespace lite::LITE_ISA
