// The loop nest that every strip-based kernel shares: blocks of tiles whose input stays in the
// second-level cache, then panels of weights, then the tiles of the block.
#pragma once

#include "ops/conv_strips.h"
#include "vec.h"

namespace lite::LITE_ISA {

// Tiles of one height that lie below each other in a strip.
struct TileRun {
  int32_t first, count;  // of the strip's
  int32_t number;        // of the first one in its block
  int32_t prefetches;    // tiles, the first ones, that fetch a share of the next panel each
};

// enter(panel) sets up a panel; body(strip, run) computes a run of at most `longest` tiles. The first kAhead tiles of a
// block fetch the next panel.
template <int kAhead = 2, class Enter, class Body>
LITE_INLINE void for_each_run(const StripList& list, const GridPart& range, int64_t block_tiles, int64_t longest,
                              Enter enter, Body body) {
  const auto [tile_begin, tile_end, panel_begin, panel_end] = range;
  for (int64_t block = tile_begin; block < tile_end; block += block_tiles) {
    const int64_t block_end = block + block_tiles < tile_end ? block + block_tiles : tile_end;
    const Strip* first = strip_of(list, static_cast<int32_t>(block));
    for (int64_t panel = panel_begin; panel < panel_end; ++panel) {
      enter(panel);
      const int64_t ahead = panel + 1 < panel_end && block_end - block > 1 ? kAhead : 0;
      const Strip* strip = first;
      int32_t j = static_cast<int32_t>(block) - strip->first_tile;
      for (int64_t tile = block; tile < block_end;) {
        if (j == strip->tiles) {
          ++strip;
          j = 0;
        }
        int64_t count = (j < strip->larger ? strip->larger : strip->tiles) - j;
        if (count > block_end - tile) count = block_end - tile;
        if (count > longest) count = longest;
        const int64_t number = tile - block, prefetches = number < ahead ? ahead - number : 0;
        body(*strip, TileRun{j, static_cast<int32_t>(count), static_cast<int32_t>(number),
                             static_cast<int32_t>(prefetches)});
        tile += count;
        j += static_cast<int32_t>(count);
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
