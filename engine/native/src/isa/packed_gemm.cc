#include "packed_gemm.h"

#include <math.h>

#include "activation.h"
#include "core_kind.h"
#include "quad_tile.h"

#if defined(LITE_PACKED_TILE)

namespace lite::LITE_ISA {
namespace {

// Ahead of a tile's packed floats in scratch memory, where outputs do not lie evenly.
struct TileRows {
  float* c[kPackedRows];
  const float* residual[kPackedRows];
  bool in_one;                     // all pixels lie in one row of the image: evenly
};
constexpr int64_t kTileRowsFloats = (sizeof(TileRows) + 63) / 64 * 16;

LITE_INLINE int64_t tile_floats(const PackedGemm& g) {
  return kTileRowsFloats + (g.depth * kPackedRows + kPackedSlack + 15) / 16 * 16;
}

LITE_INLINE bool lies_evenly(const PixelView& v) {
  return (v.h <= 1 || v.row == v.w * v.pixel) && (v.images <= 1 || v.image == v.h * v.row);
}

struct Pixel {
  const float* image;
  int64_t y, x;                     // of tap (0, 0)
};

// One row of taps of the pixel at (y, x), contiguous in memory; where some of it lies outside, it is
// put together at `patch`.
const float* row_of_taps(const PackedGemm& g, const float* image, int64_t y, int64_t x, float* patch) {
  const ConvShape& s = g.shape;
  const int64_t low = -s.in.halo[1], high = s.in.w + s.in.halo[3], c = s.group_in;
  if (y < -s.in.halo[0] || y >= s.in.h + s.in.halo[2]) return g.zeros;
  const float* from = image + y * s.in.row + x * s.in.pixel;
  if (x >= low && x + s.kernel[1] <= high) return from;
  int64_t begin, end;
  tap_window(x, 1, s.kernel[1], low, high, &begin, &end);
  memset(patch, 0, static_cast<size_t>(s.kernel[1] * c) * sizeof(float));
  memcpy(patch + begin * c, from + begin * c, static_cast<size_t>((end - begin) * c) * sizeof(float));
  return patch;
}

// take(rows, n) for the runs of taps of a tile's pixels, n floats of each. `inside`: the pixels follow the
// first one in its row, which has all columns.
template <class Take>
LITE_INLINE void for_each_run(const PackedGemm& g, const Pixel* pixels, int count, bool inside,
                              float* patches, Take take) {
  const ConvShape& s = g.shape;
  const int64_t low_x = -s.in.halo[1], high_x = s.in.w + s.in.halo[3];
  const int64_t low_y = -s.in.halo[0], high_y = s.in.h + s.in.halo[2];
  const int64_t run = s.kernel[1] * s.group_in;
  const float* rows[kPackedRows];
  for (int64_t ky = 0; ky < s.kernel[0]; ky++) {
    const int64_t down = ky * s.dilation[0];
    if (g.joined_taps) {
      const int64_t y = pixels[0].y + down;
      if (inside) {
        const bool there = y >= low_y && y < high_y;
        const float* first =
            there ? pixels[0].image + y * s.in.row + pixels[0].x * s.in.pixel : g.zeros;
        const int64_t step = there ? s.stride[1] * s.in.pixel : 0;
        LITE_UNROLL for (int m = 0; m < kPackedRows; m++) rows[m] = first + m * step;
      } else {
        for (int m = 0; m < count; m++)
          rows[m] = row_of_taps(g, pixels[m].image, pixels[m].y + down, pixels[m].x,
                                patches + m * run);
      }
      take(rows, run);
      continue;
    }
    for (int64_t kx = 0; kx < s.kernel[1]; kx++) {
      for (int m = 0; m < count; m++) {
        const int64_t y = pixels[m].y + down, x = pixels[m].x + kx * s.dilation[1];
        const bool is_inside = y >= low_y && y < high_y && x >= low_x && x < high_x;
        rows[m] = is_inside ? pixels[m].image + y * s.in.row + x * s.in.pixel : g.zeros;
      }
      take(rows, s.group_in);
    }
  }
}

// All taps of `groups` times four pixels, then a one, which meets the bias, and zeros.
void pack_tile(const PackedGemm& g, const Pixel* pixels, int groups, bool inside, float* patches,
               float* out) {
  const ConvShape& s = g.shape;
  const ptrdiff_t group = 4 * g.depth;
  float* at = out;
  for_each_run(g, pixels, 4 * groups, inside, patches,
               [&](const float* const* rows, int64_t n) __attribute__((always_inline)) {
                 for (int j = 0; j < groups; j++) pack_run(rows + 4 * j, n, at + j * group);
                 at += 4 * n;
               });
  const int64_t rest = g.depth - s.kernel[0] * s.kernel[1] * s.group_in;
  for (int64_t i = 0; i < rest; i++)
    for (int j = 0; j < groups; j++)
      store(at + j * group + i * kLanes, splat(i == 0 ? 1.0f : 0.0f));
}

// The same for kQuadTile; what is left of four floats comes from one run (takes_quads).
void pack_quad_tile(const PackedGemm& g, const Pixel* pixels, bool inside, float* patches, float* out) {
  float* at = out;
  for_each_run(
      g, pixels, kPackedRows, inside, patches,
      [&](const float* const* rows, int64_t n) __attribute__((always_inline)) {
        at = pack_quads(rows, n, at);
        const int left = static_cast<int>(n % 4);
        if (left == 0) return;
        const float one[] = {0, 0, 0, 1, 0, 0, 0};
        float ends[kPackedRows][4];
        const float* end[kPackedRows];
        for (int m = 0; m < kPackedRows; m++) {
          store(ends[m], load_part(rows[m] + n - left, left) + load(one + 3 - left));
          end[m] = ends[m];
        }
        pack_quads(end, 4, at);
      });
}

// Up to kPackedRows output pixels from `begin` on; `quads`: all of them for kQuadTile.
void gather(const PackedGemm& g, const float* x, float* y, const float* residual, int64_t begin,
            int64_t end, bool quads, float* patches, TileRows* tile) {
  const ConvShape& s = g.shape;
  const int64_t count = end - begin < kPackedRows ? end - begin : kPackedRows;
  const int64_t padded = (count + 3) / 4 * 4;
  int64_t column = begin % s.out.w, row = begin / s.out.w % s.out.h;
  int64_t image = begin / s.out.w / s.out.h;
  const bool evenly = count == padded && column + count <= s.out.w;
  Pixel pixels[kPackedRows];
  const auto place = [&](int64_t m) __attribute__((always_inline)) {
    pixels[m] = {x + s.in.origin + image * s.in.image, row * s.stride[0] - s.pad[0],
                 column * s.stride[1] - s.pad[1]};
    if (g.even) return;
    tile->c[m] = y + s.out.origin + image * s.out.image + row * s.out.row + column * s.out.pixel;
    if (residual) {
      tile->residual[m] = residual + s.residual.origin + image * s.residual.image +
                          row * s.residual.row + column * s.residual.pixel;
    }
  };
  place(0);
  tile->in_one = evenly;
  const int64_t last_x = pixels[0].x + (padded - 1) * s.stride[1] + (s.kernel[1] - 1) * s.dilation[1];
  const bool inside = evenly && g.joined_taps && pixels[0].x >= -s.in.halo[1] &&
                      last_x < s.in.w + s.in.halo[3];
  if (inside && g.even) {
    // the first one says it all
  } else if (evenly) {
    for (int64_t m = 1; m < padded; m++) {
      pixels[m] = {pixels[0].image, pixels[0].y, pixels[0].x + m * s.stride[1]};
      if (g.even) continue;
      tile->c[m] = tile->c[0] + m * s.out.pixel;
      if (residual) tile->residual[m] = tile->residual[0] + m * s.residual.pixel;
    }
  } else {
    for (int64_t m = 1; m < padded; m++) {
      if (m < count && ++column == s.out.w) {  // groups of four are filled with the last one
        column = 0;
        if (++row == s.out.h) {
          row = 0;
          ++image;
        }
      }
      place(m);
    }
  }
  float* out = reinterpret_cast<float*>(tile) + kTileRowsFloats;
  if (quads && count == kPackedRows) pack_quad_tile(g, pixels, inside, patches, out);
  else pack_tile(g, pixels, static_cast<int>(padded / 4), inside, patches, out);
}

}  // namespace

bool prepare_packed_gemm(const ConvShape& s, Env& env, PackedGemm* g) {
  g->shape = s;
  const int64_t depth = s.kernel[0] * s.kernel[1] * s.group_in;
  g->depth = (depth + 3) / 4 * 4;
  g->bias_in_weights = depth < g->depth;
  const int64_t pixels = s.out.images * s.out.h * s.out.w;
  const int64_t tiles = (pixels + kPackedRows - 1) / kPackedRows;
  g->even = lies_evenly(s.out) && (!s.has_residual || lies_evenly(s.residual));
  g->joined_taps = s.kernel[1] == 1 || s.dilation[1] * s.in.pixel == s.group_in;
  const int64_t run = g->joined_taps ? s.kernel[1] * s.group_in : s.group_in;
  g->takes_quads = run % 4 == 0 || (s.kernel[0] == 1 && s.kernel[1] == 1);
  g->zeros = static_cast<float*>(env.allocate((s.kernel[1] * s.group_in + 1) * sizeof(float)));
  if (!g->zeros) return env.out_of_memory();
  // A block stays cached while all panels pass over it; large weights should pass few times.
  const double l2 = static_cast<double>(env.l2_bytes);
  const double weight_bytes = 4.0 * static_cast<double>(g->depth) * static_cast<double>(s.group_out);
  const double room = weight_bytes > l2 ? l2 : 0.4 * l2;
  const double block = room / (4.0 * static_cast<double>(tile_floats(*g)));
  g->block_tiles = block < 1 ? 1 : block > tiles ? tiles : static_cast<int64_t>(block);
  g->scratch_bytes = static_cast<size_t>(g->block_tiles * tile_floats(*g) +
                                         kPackedRows * s.kernel[1] * s.group_in) * sizeof(float);
  return true;
}

void run_packed_gemm(const PackedGemm& g, const float* x, float* y, const float* residual,
                     const GridPart& part, float* scratch) {
  const auto [begin, end, panel_begin, panel_end] = part;
  const int64_t channels = g.shape.group_out, stride = tile_floats(g);
  const Activation& activation = g.shape.activation;
  const Act act = activation.act;
  const bool apply = act != Act::kNone && act != Act::kClip && act != Act::kHardSwish;
  const PixelView &out = g.shape.out, &more = g.shape.residual;
  const bool reorders = !issues_in_order(), quads = g.takes_quads && reorders;
  PackedTile t{};
  t.k = g.depth;
  t.group = 4 * g.depth;
  t.a_next = stride;
  t.ldc = out.pixel;
  t.ldr = more.pixel;
  t.lo = act == Act::kClip ? activation.a : -INFINITY;
  t.hi = act == Act::kClip ? activation.b : INFINITY;
  t.hard_swish = act == Act::kHardSwish;
  for (int64_t block = begin; block < end; block += g.block_tiles * kPackedRows) {
    const int64_t rest = end - block, room = g.block_tiles * kPackedRows;
    const int64_t pixels = rest < room ? rest : room;
    for (int64_t i = 0; i * kPackedRows < pixels; i++) {
      gather(g, x, y, residual, block + i * kPackedRows, end, quads,
             scratch + g.block_tiles * stride, reinterpret_cast<TileRows*>(scratch + i * stride));
    }
    for (int64_t panel = panel_begin; panel < panel_end; panel++) {
      t.channel = panel * kTileColumns;
      const int64_t left = channels - t.channel;
      t.columns = static_cast<int32_t>(left < kTileColumns ? left : kTileColumns);
      const uint32_t even_tasks = tasks_of(t, residual != nullptr, false);
      const uint32_t apart_tasks = tasks_of(t, residual != nullptr, true);
      t.tasks = even_tasks;
      t.w = g.weights + panel * g.depth * kTileColumns;
      t.bias = g.bias_in_weights ? nullptr : g.bias + t.channel;
      const int vectors = tile_vectors(t.columns);
      // All whole tiles at once where they lie evenly.
      const int64_t whole = pixels / kPackedRows;
      t.tiles = g.even && whole ? whole : 1;
      for (int64_t pixel = 0; pixel < pixels;) {
        const int64_t height = pixels - pixel < kPackedRows ? pixels - pixel : kPackedRows;
        if (height < kPackedRows) t.tiles = 1;
        float* const at = scratch + pixel / kPackedRows * stride;
        t.a = at + kTileRowsFloats;
        if (g.even) {
          t.c = y + out.origin + (block + pixel) * out.pixel + t.channel;
          if (residual) t.residual = residual + more.origin + (block + pixel) * more.pixel + t.channel;
        } else {
          const TileRows& rows = *reinterpret_cast<const TileRows*>(at);
          const bool apart = !rows.in_one;
          t.tasks = apart ? apart_tasks : even_tasks;
          t.c = rows.c[0] + t.channel;
          t.residual = residual ? rows.residual[0] + t.channel : nullptr;
          t.c_rows = apart ? rows.c : nullptr;
          t.residual_rows = apart && residual ? rows.residual : nullptr;
        }
        const bool quad = quads && height == kPackedRows;
        t.rows = static_cast<int32_t>(height);
        t.a_k = quad ? kPackedRows : 4;
        multiply_packed_tile(quad ? kQuadTile[vectors - 1] : rest_tile(vectors, height, reorders), t);
        if (apply && !t.c_rows) activate_rows(t.c, t.tiles * height, t.ldc, t.columns, activation);
        for (int64_t m = 0; apply && t.c_rows && m < height; m++)
          activate(t.c_rows[m] + t.channel, t.columns, activation);
        pixel += t.tiles * height;
      }
    }
  }
}

}  // namespace lite::LITE_ISA

#endif
