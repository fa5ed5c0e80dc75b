// Output pixels of a convolution grouped into strips that see the same taps.
//
// Padding is never materialised: a tap outside the input is left out. The outputs of an image fall
// into rectangles that see the same taps: the inside, its edges and corners, or with taps far apart
// large ones that see some of them. A rectangle is cut into rows or, where those would leave tiles
// emptier, into columns. An input that owns a halo wider than the padding is one rectangle.
#pragma once

#include "conv_shape.h"

namespace lite {

struct Strip {
  int64_t a, c, r;              // element of the first pixel: its tap (ky0, kx0), output, residual
  int64_t lda, ldc, ldr;        // elements from one pixel of the strip to the next
  int32_t ky0, ky1, kx0, kx1;   // taps inside the input
  int32_t pixels;
  int32_t first_tile;           // tiles of all strips before this one
  int32_t tiles, base, larger;  // `larger` tiles of base + 1 pixels, then tiles of base
  int32_t window;               // which of StripList::windows (tap windows that differ)
};

struct TapWindow {
  int32_t ky0, ky1, kx0, kx1;
};

struct StripList {
  Strip* strips;
  TapWindow* windows;
  int32_t count, tiles, num_windows;
  int64_t group_rows;       // output rows per group: strips of one group lie together
  int32_t* group_tiles;     // first tile of each group; one entry more than groups
};

// Whether all pixels of a tensor are equally far from each other.
bool one_long_row(const PixelView&);
// Merges images and rows of a 1x1 stride-1 convolution over dense pixels into one long row.
void flatten_pointwise(ConvShape*);

// Fills the list for tiles of at most `tile_rows` pixels; memory comes from env. `group_rows` > 0
// keeps strips within so many output rows (of one image).
bool make_strips(const ConvShape&, int tile_rows, Env&, StripList*, int64_t group_rows = 0);

// Strip that holds a tile.
LITE_INLINE const Strip* strip_of(const StripList& list, int32_t tile) {
  int32_t low = 0, high = list.count - 1;
  while (low < high) {
    const int32_t middle = (low + high + 1) / 2;
    if (list.strips[middle].first_tile <= tile) low = middle;
    else high = middle - 1;
  }
  return &list.strips[low];
}
LITE_INLINE int32_t strip_begin(const Strip& s, int32_t j) {
  return j * s.base + (j < s.larger ? j : s.larger);
}

// How threads share a grid of tiles x panels.
struct ThreadGrid {
  int32_t by_tiles, by_panels;    // their product is at most the number of threads
};
// tile_cost: time of one tile of one panel; *_cost: time to read all of A or of the weights once.
ThreadGrid choose_grid(int threads, int64_t tiles, int64_t panels, double tile_cost,
                       double input_cost, double weight_cost);
// The same where each part makes sums of its rows and of its weights, so that fewer parts than there are shares are
// faster. Two for each thread, where they cost little, let one help another that a slow core holds up.
ThreadGrid choose_parts(const Env&, int64_t tiles, int64_t panels, double tile_cost, double input_cost,
                        double weight_cost);

// A rectangle of the grid: tiles, or whatever stands for them (pixels, lines), and panels.
struct GridPart {
  int64_t begin, end, panel_begin, panel_end;
};
// One thread's, cut at multiples of `grain` tiles; empty for threads that are left over.
GridPart part_of(const ThreadGrid&, int64_t tiles, int64_t grain, int64_t panels, int thread);

}  // namespace lite
