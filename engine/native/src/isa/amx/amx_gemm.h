// Convolution and matrix products on AMX tiles: 16 x 16 sums of 64-byte rows, int8 or bf16.
//
// Time on the matrix unit does not depend on how full a tile is (measured: 16 cycles each), so full
// tiles are everything. Rows of a tile are output pixels one after the other, across image rows:
//
// - a 1x1 convolution over dense pixels, or a matrix, is read where it lies;
// - anything else is copied once, with its padding, so that a step to the next output is the same
//   number of bytes everywhere. Padding on the right of one row is that on the left of the next;
//   outputs of those few columns are computed and dropped. A vertical stride splits the rows by
//   their remainder. A tap is then one offset, and no im2col is made.
//
// A large copy is not made whole but some rows of outputs at a time, by each thread in its own scratch
// memory (`chunk_rows`).
//
// Operands may be sums of `parts` numbers each: the copies of the second parts lie `part_bytes` behind
// those of the first, their weights behind each k tile of the first.
//
// All taps of a k tile follow each other, so that a tile's pixels stay in the first-level cache meanwhile.
// Weights are [group][panel][k tile][tap][part][k_bytes / 4][column][4 bytes], two tiles of 16 columns
// to a panel. Two pixel tiles x two column tiles are summed at once; the sums of a block are finished
// while the next one is multiplied.
#pragma once

#include "ops/conv_strips.h"
#include "isa/f32_tile.h"

namespace lite::LITE_ISA {

constexpr int kAmxRows = 16;
constexpr int kAmxBlock = 2 * kAmxRows;    // pixels
constexpr int kAmxColumns = 32;
constexpr int kAmxDepthBytes = 64;

struct AmxGemm {
  PixelView source, out, residual;
  int64_t source_column;             // pixels from one copied pixel to the next
  int64_t source_left, source_top;   // padding in copied pixels and rows
  bool copied;
  size_t copy_at;                    // of Step::shared
  int64_t group_bytes;               // of one group's channels in the source
  int64_t groups, in_c, out_c;       // of one packed group
  int64_t pixel, row, plane, image;  // bytes of the operand: its pixels, rows, planes, images
  int32_t planes, plane_rows;        // rows of the copy, split by vertical stride
  int64_t reach_rows;                // rows of the source that an output sees
  uint64_t used_planes;              // bit per plane; all beyond 64
  int64_t padded;                    // bytes of one group in a copied pixel
  bool joined;                       // a row of taps is one run of bytes: three of 32 are two tiles
  int64_t lda;                       // bytes from one output slot to the next
  int64_t slots;                     // slots per row of outputs, out.w of them outputs
  int64_t total;                     // slots of an image, or of a chunk
  int32_t blocks;                    // of those
  int64_t chunk_rows;                // rows of outputs that are copied and computed at once; 0: all
  int32_t parts;
  int64_t part_bytes;
  int32_t taps, k_tiles, k_bytes;
  const int64_t* offsets;            // of every k tile of every tap
  int64_t panels, panel_bytes, group_weight_bytes;
  const uint8_t* weights;
  int32_t group_blocks;              // blocks that go through all panels together
  ThreadGrid grid;
};

struct AmxBlock {
  const AmxGemm* g;
  int64_t image, group, panel, slot;  // first slot
  int32_t first, rows;                // of the rows computed from `slot` on, those that count
  int32_t columns;                    // valid ones
  const uint8_t* ahead;               // weights of the next panel to fetch meanwhile
  int32_t ahead_lines;                // after every k tile
};

LITE_INLINE const uint8_t* fetch_ahead(const uint8_t* ahead, int32_t lines) {
  for (; lines > 0; --lines, ahead += 64) prefetch_l2(ahead);
  return ahead;
}

// Plans a convolution of elements of `element_bytes`, or of sums of `parts` such. Leaves weights,
// panels' bytes set, to pack. False with an empty error when AMX does not pay here: when vectors, which
// need `vector_share` of the products, are faster. `by_rows` leaves the rows of an image apart.
bool plan_amx(ConvShape s, int element_bytes, bool in_place, const Env& env, AmxGemm* g,
              int parts = 1, double vector_share = 1, bool by_rows = false);
// Whether a copy of everything would leave the second-level cache before it is read: each thread
// should copy some rows at a time.
bool outgrows_cache(const AmxGemm& g, const ConvShape& s, const Env& env);
// Rows per chunk, of a plan by rows: as many as take a third of that cache, equal ones.
int64_t rows_per_chunk(const AmxGemm& g, const ConvShape& s, const Env& env);
// Copies `rows` rows of outputs at a time. After plan_amx with `by_rows`.
void plan_chunks(int64_t rows, AmxGemm* g);
// `rows` rows of outputs of one image, from `begin` on, as a convolution of their own.
AmxGemm chunk_of(const AmxGemm& g, int64_t image, int64_t begin, int64_t rows);
// The same of the only image's rows where they are read in place.
AmxGemm rows_of(const AmxGemm& g, int64_t begin, int64_t rows);
// Bytes of the copied operand, with what whole tiles read behind it.
size_t operand_bytes(const AmxGemm& g);
// Memory for offsets; grid and blocking. After plan_amx.
bool finish_plan(const ConvShape& s, int element_bytes, Step& step, Env& env, AmxGemm* g);

// The tile shapes of a step; every thread sets them before it multiplies and releases them after.
void set_tiles(const AmxGemm& g);
void release_tiles();

LITE_INLINE int64_t amx_panel_columns(const AmxGemm& g, int64_t panel) {
  return g.out_c - panel * kAmxColumns > kLanes ? kAmxColumns : kLanes;
}

// What tiles of pixels read, said to AddressSanitizer.
LITE_INLINE void touches_pixels(const AmxGemm& g, const uint8_t* from, int tiles) {
  for (int row = 0; row < tiles * kAmxRows; ++row) touches(from + row * g.lda, g.k_bytes);
}

// The sums of a block in tiles 0 to 3 (pixels x columns), begun with the bias of their columns.
// multiply(pixels, weights) adds the products of a k tile of a tap, whose weights are `weight_bytes`.
template <int kPixels, int kVectors, class Multiply>
LITE_INLINE void sum_products(const AmxGemm& g, const AmxBlock& b, const uint8_t* a,
                              const uint8_t* w, const void* bias, int64_t weight_bytes,
                              Multiply multiply) {
  const char* columns = static_cast<const char*>(bias);
  _tile_loadd(0, columns, 0);  // a row stride of 0: the same bias in every row
  if (kVectors > 1) _tile_loadd(1, columns + 64, 0);
  if (kPixels > 1) _tile_loadd(2, columns, 0);
  if (kPixels > 1 && kVectors > 1) _tile_loadd(3, columns + 64, 0);
  const int steps = g.taps * g.k_tiles;
  const uint8_t* ahead = b.ahead;
  for (int i = 0; i < steps; ++i, w += weight_bytes) {
    ahead = fetch_ahead(ahead, b.ahead_lines);
    const uint8_t* from = a + g.offsets[i];
    touches_pixels(g, from, kPixels);
    multiply(from, w);
  }
}

// Memory for the sums of a block: [row][kAmxColumns], or [row][kLanes].
template <class Number>
struct alignas(64) AmxSums {
  Number at[kAmxBlock * kAmxColumns];
};

// The sums of a block, 16 or 32 columns of 4 bytes a row.
LITE_INLINE void store_sums(void* to, int tiles, int vectors) {
  char* at = static_cast<char*>(to);
  const int stride = 64 * vectors, lower = kAmxRows * stride;
  _tile_stored(0, at, stride);
  if (vectors > 1) _tile_stored(1, at + 64, stride);
  if (tiles > 1) _tile_stored(2, at + lower, stride);
  if (tiles > 1 && vectors > 1) _tile_stored(3, at + lower + 64, stride);
}

// The order of packed weights, as numbers of a recipe behind those of the view.
LITE_INLINE void describe_order(const AmxGemm& g, Recipe* recipe) {
  const int64_t all[] = {g.groups, g.panels, g.out_c, g.in_c,  g.taps,   g.k_bytes,
                         g.k_tiles, g.parts, g.joined, g.padded, g.panel_bytes, g.group_weight_bytes};
  static_assert(sizeof all == sizeof recipe->numbers - kViewNumbers * sizeof(int64_t));
  memcpy(recipe->numbers + kViewNumbers, all, sizeof all);
}

// Packs weights: at(group, o, c, ky, kx) gives an element of a part.
template <class Element, class At>
LITE_INLINE void pack_amx(const AmxGemm& g, int64_t kernel_w, uint8_t* out, At at, int part = 0) {
  constexpr int64_t kIn4 = 4 / sizeof(Element);
  const int64_t channels = g.padded / static_cast<int64_t>(sizeof(Element));
  for (int64_t group = 0; group < g.groups; ++group)
    for (int64_t p = 0; p < g.panels; ++p) {
      const int64_t columns = amx_panel_columns(g, p), n0 = p * kAmxColumns;
      Element* panel =
          reinterpret_cast<Element*>(out + group * g.group_weight_bytes + p * g.panel_bytes);
      const int64_t rows = g.k_bytes / 4;
      for (int64_t tap = 0; tap < g.taps; ++tap)
        for (int64_t k = 0; k < g.k_tiles * rows; ++k) {
          const int64_t tile = (k / rows * g.taps + tap) * g.parts + part;
          Element* w = panel + (tile * rows + k % rows) * columns * kIn4;
          for (int64_t i = 0; i < kIn4; ++i) {
            const int64_t e = k * kIn4 + i;
            const int64_t kx = g.joined ? e / channels : tap % kernel_w;
            const int64_t ky = g.joined ? tap : tap / kernel_w;
            const int64_t c = g.joined ? e % channels : e;
            if (c >= g.in_c || kx >= kernel_w) continue;  // packed weights are zeros
            for (int64_t n = 0; n < columns && n0 + n < g.out_c; ++n)
              w[n * kIn4 + i] = at(group, n0 + n, c, ky, kx);
          }
        }
    }
}

// Phase 0: copies one thread's rows; copy(from pixel, to, pixels) moves pixels, fill(to, pixels)
// writes padding.
template <class Copy, class Fill>
LITE_INLINE void copy_planes(const AmxGemm& g, uint8_t* to, int thread, int threads, Copy copy,
                             Fill fill) {
  const int64_t rows = int64_t{g.planes} * g.plane_rows, width = g.row / g.pixel;
  int64_t begin, end;
  share(g.source.images * rows, 1, thread, threads, &begin, &end);
  for (int64_t i = begin; i < end; ++i) {
    const int64_t image = i / rows, row = i % rows, plane = row / g.plane_rows;
    const int64_t in_plane = row % g.plane_rows;
    uint8_t* at = to + image * g.image + plane * g.plane + in_plane * g.row;
    // Behind the last row of a plane there is another plane, but for the last one and short chunks.
    const bool last = row == rows - 1 || g.plane != g.plane_rows * g.row;
    if (last && in_plane == g.plane_rows - 1) fill(at + g.row, g.source_left);
    if (plane < 64 && !(g.used_planes >> plane & 1)) {  // the row before it ends with this padding
      fill(at, g.source_left);
      continue;
    }
    const int64_t y = in_plane * g.planes + plane - g.source_top;
    if (y < 0 || y >= g.source.h) {
      fill(at, width);
      continue;
    }
    const int64_t pixels = (g.source.w + g.source_column - 1) / g.source_column;
    const int64_t room = width - g.source_left, n = pixels < room ? pixels : room;
    fill(at, g.source_left);
    copy(g.source.origin + image * g.source.image + y * g.source.row, at + g.source_left * g.pixel, n);
    fill(at + (g.source_left + n) * g.pixel, room - n);
  }
}

// Visits the rows of a block that are outputs: visit(row of the block, element of y, of residual).
template <class Visit>
LITE_INLINE void for_each_output(const AmxBlock& b, Visit visit) {
  const AmxGemm& g = *b.g;
  const int64_t at = b.slot + b.first;
  int64_t y = at / g.slots, x = at - y * g.slots;
  const int64_t channel = b.group * g.out_c + b.panel * kAmxColumns;
  int64_t c = g.out.origin + b.image * g.out.image + y * g.out.row + x * g.out.pixel + channel;
  int64_t r = g.residual.origin + b.image * g.residual.image + y * g.residual.row +
              x * g.residual.pixel + channel;
  for (int32_t m = b.first; m < b.rows; ++m) {
    if (x < g.out.w) visit(m, c, r);
    c += g.out.pixel;
    r += g.residual.pixel;
    if (++x == g.slots) {
      x = 0;
      c += g.out.row - g.slots * g.out.pixel;
      r += g.residual.row - g.slots * g.residual.pixel;
    }
  }
}

// One thread's blocks. Calls multiply(block, a, w, pixel tiles, column tiles), then finish(the block
// before), then store(which): so that one block is finished while the next is multiplied.
template <class Multiply, class Store, class Finish>
LITE_INLINE void for_each_block(const AmxGemm& g, const uint8_t* operand, int thread,
                                Multiply multiply, Store store, Finish finish) {
  const auto [begin, end, panel_begin, panel_end] =
      part_of(g.grid, g.source.images * g.blocks, 1, g.groups * g.panels, thread);
  AmxBlock before{};
  bool pending = false;
  int which = 0;
  for (int64_t from = begin; from < end; from += g.group_blocks) {
    const int64_t to = from + g.group_blocks < end ? from + g.group_blocks : end;
    for (int64_t p = panel_begin; p < panel_end; ++p) {
      AmxBlock b;
      b.g = &g;
      b.group = p / g.panels;
      b.panel = p - b.group * g.panels;
      const int64_t left = g.out_c - b.panel * kAmxColumns;
      b.columns = static_cast<int32_t>(left < kAmxColumns ? left : kAmxColumns);
      const uint8_t* w = g.weights + b.group * g.group_weight_bytes + b.panel * g.panel_bytes;
      const uint8_t* group_start = operand + b.group * (g.copied ? g.padded : g.group_bytes);
      // Weights are cold when a step begins: every block fetches its share of the next panel.
      const int64_t steps = int64_t{g.taps} * g.k_tiles * (to - from);
      b.ahead = w + g.panel_bytes;
      b.ahead_lines =
          from == begin && p + 1 < panel_end
              ? static_cast<int32_t>((g.panel_bytes / 64 + steps - 1) / steps) : 0;
      for (int64_t i = from; i < to; ++i) {
        b.image = i / g.blocks;
        b.slot = i % g.blocks * kAmxBlock;
        const int64_t rest = g.total - b.slot;
        const int tiles = rest > kAmxRows ? 2 : 1;
        b.rows = static_cast<int32_t>(rest < kAmxBlock ? rest : kAmxBlock);
        b.first = 0;
        if (!g.copied && rest < tiles * kAmxRows) {  // nothing may be read behind the tensor
          b.first = static_cast<int32_t>(tiles * kAmxRows - rest);
          b.slot -= b.first;
          b.rows = tiles * kAmxRows;
        }
        multiply(b, group_start + b.image * g.image + b.slot * g.lda, w, tiles,
                 tile_vectors(b.columns));
        b.ahead += int64_t{b.ahead_lines} * 64 * g.taps * g.k_tiles;
        if (b.ahead >= w + 2 * g.panel_bytes) b.ahead_lines = 0;
        if (pending) finish(before, which ^ 1);
        store(which, tiles, tile_vectors(b.columns));
        before = b;
        pending = true;
        which ^= 1;
      }
    }
  }
  if (pending) finish(before, which ^ 1);
}

// Output rows [begin, end) of an image, chunk by chunk: copy(chunk, operand, thread, threads), then
// multiply(chunk, operand, thread).
template <class Copy, class Multiply>
void run_chunks(const AmxGemm& g, int64_t image, int64_t begin, int64_t end, uint8_t* operand,
                Copy copy, Multiply multiply) {
  const int64_t passes = (end - begin + g.chunk_rows - 1) / g.chunk_rows;
  for (int64_t pass = 0; pass < passes; ++pass) {
    int64_t from, to;
    share(end - begin, 1, static_cast<int>(pass), static_cast<int>(passes), &from, &to);
    const AmxGemm chunk = chunk_of(g, image, begin + from, to - from);
    copy(chunk, operand, 0, 1);
    multiply(chunk, operand, 0);
  }
}

// One thread's share of a phase: of the copy, or in the last phase of the products, where `x` is the
// input's first byte. Tiles are set.
template <class Copy, class Multiply>
void run_amx(const AmxGemm& g, const Step& step, int phase, int thread, int threads, void* scratch,
             const uint8_t* x, Copy copy, Multiply multiply) {
  uint8_t* copied = static_cast<uint8_t*>(step.shared) + g.copy_at;
  if (phase == 0 && g.copied && !g.chunk_rows) copy(g, copied, thread, threads);
  if (phase + 1 < step.phases) return;
  if (!g.chunk_rows) return multiply(g, g.copied ? copied : x, thread);
  const int64_t height = g.out.h;
  int64_t row, end;
  share(g.source.images * height, 1, thread, threads, &row, &end);
  while (row < end) {
    const int64_t image = row / height, first = image * height;
    const int64_t last = end < first + height ? end : first + height;
    run_chunks(g, image, row - first, last - first, static_cast<uint8_t*>(scratch), copy, multiply);
    row = last;
  }
}

}  // namespace lite::LITE_ISA
