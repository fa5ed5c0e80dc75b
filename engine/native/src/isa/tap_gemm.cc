#include "tap_gemm.h"

#include <math.h>

#include "activation.h"
#include "tap_weights.h"
#include "tile_loop.h"

namespace lite::LITE_ISA {
namespace {

constexpr int32_t kShortBlock = kTileRows > 8 ? 4 : 96 / kTileRows;  // tiles
// Rows so deep that the cache holds fewer tiles than this would fetch the weights too often: they are multiplied some
// of their depth at a time, and the sums wait in the output.
constexpr int32_t kFewTiles = 4;
constexpr bool kCutsDepth = kProducts == 1 && sizeof(Real) == sizeof(float);

// Rows that lie a multiple of 4 KiB apart share one set of x86's first-level cache, of eight or twelve ways:
// a tile of more rows finds none of their lines twice. Copied with their taps in one run, a line further apart,
// they cost less if enough panels read them.
constexpr bool kManyRows = kTileRows > 8;
constexpr int64_t kSetsBytes = 4096, kPanelsOfCopy = 8;
bool rows_share_a_set(const ConvShape& s, const TapGemm& g) {
  const int64_t apart = s.stride[1] * s.in.pixel * static_cast<int64_t>(sizeof(Real));
  return kManyRows && g.groups == 1 && apart % kSetsBytes == 0 && g.panels >= kPanelsOfCopy;
}

#if defined(LITE_GROUPED_CONV)
// The order of GroupedConv::weights.
void pack_groups(const ConvShape& s, const WeightView& v, const GroupedConv& g, Real* out) {
  for (int64_t c = 0; c < s.out.c; ++c) {
    const float* source = v.data + c / s.group_out * v.group + c % s.group_out * v.out;
    Real* to = out + c / g.channels * g.vector_elems + c % g.channels;
    for (int64_t ky = 0; ky < s.kernel[0]; ++ky)
      for (int64_t kx = 0, taps; kx < s.kernel[1]; kx += taps) {
        taps = kx < 3 * g.threes ? 3 : 1;
        for (int64_t j = 0; j < s.group_in; ++j)
          for (int64_t i = 0; i < taps; ++i, to += kLanes)
            *to = source[j * v.in + ky * v.y + (kx + i) * v.x] * v.scale;
      }
  }
}

bool prepare_groups(const ConvShape& s, const WeightView& v, const float* bias, float bias_scale, Env& env,
                    TapGemm* g) {
  GroupedConv& grouped = g->grouped;
  if (!prepare_grouped_conv(s, env, &grouped)) return false;
  const int64_t elems = grouped.vectors * grouped.vector_elems;
  bool made;
  const Recipe recipe = recipe_of(LITE_ISA_NAME " " LITE_REAL " groups", s, v);
  Real* packed = static_cast<Real*>(env.allocate_packed(recipe, (elems + 1) * sizeof(Real), &made));
  Real* b = static_cast<Real*>(env.allocate((grouped.vectors * kLanes + 1) * sizeof(Real)));
  if (!packed || !b) return env.out_of_memory();
  if (!made) pack_groups(s, v, grouped, packed);
  for (int64_t c = 0; bias && c < s.out.c; ++c)
    b[c / grouped.channels * kLanes + c % grouped.channels] = bias[c] * bias_scale;
  grouped.weights = packed;
  grouped.bias = b;
  // In cycles, as below.
  const double numbers_in = static_cast<double>(s.in.images) * s.in.h * s.in.w * s.in.c;
  const double products = static_cast<double>(s.out.w * grouped.vector_elems) / kLanes;
  g->grid = choose_grid(env.threads, s.out.images * s.out.h, grouped.vectors, products, numbers_in / 4,
                        static_cast<double>(elems) / 4);
  g->scratch_bytes = grouped.scratch_bytes;
  g->list.group_rows = 1;
  return true;
}
#endif

}  // namespace

bool prepare_tap_gemm(ConvShape s, const WeightView& weights, const float* bias, float bias_scale,
                      Env& env, TapGemm* g, bool by_rows) {
  g->of_groups = g->is_strassen = false;
#if defined(LITE_GROUPED_CONV)
  g->of_groups = is_grouped_conv(s);
  if (g->of_groups) return prepare_groups(s, weights, bias, bias_scale, env, g);
#endif
  const int64_t join = groups_to_join(s, kLanes);
  g->groups = s.groups / join;
  g->in_c = s.group_in * join;
  g->out_c = s.group_out * join;
  g->kernel_w = s.kernel[1];
  g->panels = panel_count(g->out_c);
  g->of_image = is_image_conv(s);
  g->packs = !g->of_image && packs_rows(s);
  g->row_pixels = s.out.w;
  g->copied_lda = 0;
  g->scratch_bytes = 0;
#if defined(LITE_PACKED_TILE)
  if (g->of_image) {
    if (!prepare_image_conv(s, env, &g->image)) return false;
    g->scratch_bytes = g->image.scratch_bytes;
  }
#endif
  if (g->packs) {
    flatten_pointwise(&s);
    if (!prepare_packed_gemm(s, env, &g->packed)) return false;
    g->scratch_bytes = g->packed.scratch_bytes;
  }
  const int64_t depth = g->packs ? g->packed.depth : s.kernel[0] * s.kernel[1] * g->in_c;
  g->panel_elems = depth * kTileColumns;
  g->group_elems =
      g->panels ? (g->panels - 1) * g->panel_elems + depth * panel_columns(g->out_c, g->panels - 1)
                : 0;
  g->tap_x = s.dilation[1] * s.in.pixel;
  g->tap_y = s.dilation[0] * s.in.row;
  g->joined_taps = g->tap_x == g->in_c;
  g->activation = s.activation;
  g->short_out = g->short_residual = false;
  const bool clip = s.activation.act == Act::kClip;
  g->lo = clip ? s.activation.a : -INFINITY;
  g->hi = clip ? s.activation.b : INFINITY;

  Recipe recipe = recipe_of(LITE_ISA_NAME " " LITE_REAL " panels", s, weights);
  recipe.numbers[kViewNumbers] = join;
  recipe.numbers[kViewNumbers + 1] = g->panel_elems;
  const size_t packed_bytes = (g->groups * g->group_elems + kPackedSlack) * sizeof(Real);
  bool made = false;
  Real* packed = static_cast<Real*>(g->packs && g->packed.bias_in_weights
                                        ? env.allocate(packed_bytes)
                                        : env.allocate_packed(recipe, packed_bytes, &made));
  Real* b = static_cast<Real*>(
      env.allocate((g->groups * g->panels * kTileColumns + 1) * sizeof(Real)));
  if (!packed || !b) return env.out_of_memory();
  if (!made) pack(s, weights, join, *g, packed);
  for (int64_t i = 0; bias && i < g->groups * g->out_c; ++i)
    b[i / g->out_c * g->panels * kTileColumns + i % g->out_c] =
        static_cast<Real>(bias[i] * bias_scale);
  for (int64_t p = 0; g->packs && g->packed.bias_in_weights && p < g->panels; ++p) {
    const int64_t columns = panel_columns(g->out_c, p), row = s.kernel[0] * s.kernel[1] * g->in_c;
    memcpy(packed + p * g->panel_elems + row * columns, b + p * kTileColumns, columns * sizeof(Real));
  }
  g->weights = g->packed.weights = g->image.weights = packed;
  g->bias = g->packed.bias = g->image.bias = b;
  g->image.panel_elems = g->panel_elems;
  const double pixels_in = static_cast<double>(s.in.images) * s.in.h * s.in.w;
  const double pixels_out = static_cast<double>(s.out.images) * s.out.h * s.out.w;
  // In cycles: two vectors of FMA a cycle, 16 bytes a cycle from the next cache.
  const auto choose = [&](int64_t tiles) {
    g->grid = choose_grid(env.threads, tiles, g->groups * g->panels,
                          pixels_out / tiles * static_cast<double>(depth) + 60,
                          pixels_in * s.in.c / 4, g->groups * g->group_elems / 4.0);
  };
  if (g->of_image) {
    g->list.group_rows = 1;
    choose(s.out.images * s.out.h);
    return true;
  }
  if (g->packs) {
    g->list.group_rows = 1;
#if defined(LITE_STRASSEN)
    g->is_strassen = !by_rows && prepare_strassen(s, false, env, g);
    if (g->is_strassen) return true;
#endif
    choose((s.out.images * s.out.h * s.out.w + kPackedRows - 1) / kPackedRows);
    return true;
  }

  // Edge columns are strips downwards, which four rows begin to fill.
  const bool pointwise = s.kernel[0] * s.kernel[1] == 1;
  const int64_t group_rows = !by_rows ? 0 : pointwise ? 1 : 4;
  if (!by_rows) flatten_pointwise(&s);
  if (!make_strips(s, kTileRows, env, &g->list, group_rows)) return false;
  if (g->list.tiles == 0) return true;
#if defined(LITE_STRASSEN)
  g->is_strassen = !by_rows && prepare_strassen(s, rows_share_a_set(s, *g), env, g);
  if (g->is_strassen) return true;
#endif
  const auto block_of = [&](double share_of_depth) {
    return tiles_per_block(g->list, sizeof(Real) * pixels_in * s.in.c * share_of_depth,
                           sizeof(Real) * pixels_out * kTileColumns, env.l2_bytes);
  };
  g->depth_step = g->in_c;
  g->block_tiles = block_of(1);
  if (kCutsDepth && pointwise && g->groups == 1 && g->in_c > kLongestSum && g->block_tiles < kFewTiles &&
      g->block_tiles < g->list.tiles && !rows_share_a_set(s, *g)) {
    const int64_t steps = (g->in_c + kLongestSum - 1) / kLongestSum;
    g->depth_step = (g->in_c + steps - 1) / steps;
    g->block_tiles = block_of(1.0 / static_cast<double>(steps));
  }
  // Few weights stay in the cache beside a block: short blocks finish neighbouring lines of the output
  // soon after each other.
  const double weight_bytes = static_cast<double>(sizeof(Real)) * g->group_elems;
  if (g->panels >= 4 && weight_bytes <= static_cast<double>(env.l2_bytes) / 4 && g->block_tiles > kShortBlock)
    g->block_tiles = kShortBlock;
  if (rows_share_a_set(s, *g)) {
    g->copied_lda = depth + 64 / sizeof(Real);
    const size_t tile_bytes = sizeof(Real) * kTileRows * g->copied_lda;
    const size_t tiles = pointwise ? g->block_tiles : env.l2_bytes / 2 / tile_bytes;
    if (tiles < static_cast<size_t>(g->block_tiles))
      g->block_tiles = tiles ? static_cast<int32_t>(tiles) : 1;
    g->scratch_bytes = g->block_tiles * tile_bytes;
  }
  choose(g->list.tiles);
  return true;
}

namespace {

// The taps of one pixel behind each other.
void copy_taps(const TapGemm& g, const Real* a, int64_t taps_y, int64_t taps_x, Real* copy) {
  for (int64_t y = 0; y < taps_y; ++y, a += g.tap_y)
    for (int64_t x = 0; x < taps_x; ++x, copy += g.in_c)
      memcpy(copy, a + x * g.tap_x, g.in_c * sizeof(Real));
}

void run_tiles(const TapGemm& g, const Real* x, Real* y, const Real* residual,
               const GridPart& range, void* scratch) {
  const Act act = g.activation.act;
  const bool activates = act != Act::kNone && act != Act::kClip && act != Act::kHardSwish;
  const int64_t row_depth = g.kernel_w * g.in_c;
  int64_t channel_in = 0, channel_out = 0;
  const Real* weights = nullptr;
  Tile t;
  t.tap_x = g.tap_x;
  t.short_residual = g.short_residual;
  t.short_c = g.short_out && !activates;
  const bool whole = g.depth_step == g.in_c;
  int64_t k = 0, half_panel = g.panel_elems / 2;  // where what is multiplied begins; what a tile fetches
  bool apply = false;                             // behind the last of k
  Real floats[kTileRows * kTileColumns];  // of a tile, where they are rounded later
  bool first_panel = false;
  // What is copied lies apart, and few floats are kept.
  const bool one_by_one = (kManyRows && g.copied_lda) || (g.short_out && activates);
  const auto enter = [&](int64_t p) __attribute__((always_inline)) {
    const int64_t group = p / g.panels, panel = p - group * g.panels, n0 = panel * kTileColumns;
    weights = g.weights + group * g.group_elems + panel * g.panel_elems;
    first_panel = p == range.panel_begin;
    channel_in = group * g.in_c;
    channel_out = group * g.out_c + n0;
    t.columns = static_cast<int32_t>(g.out_c - n0 < kTileColumns ? g.out_c - n0 : kTileColumns);
    t.ldw = tile_vectors(t.columns) * kLanes;
    t.w_y = row_depth * t.ldw;
    weights += k * t.ldw;
    t.bias = k > 0 ? kNoBias : g.bias + (group * g.panels + panel) * kTileColumns;
  };
  const auto body = [&](const Strip& s, const TileRun& run) __attribute__((always_inline)) {
    const int32_t m0 = strip_begin(s, run.first), rows = s.base + (run.first < s.larger);
    const int32_t kernel_w = s.kx1 - s.kx0;
    const bool copied = kManyRows && g.copied_lda, joined = copied || g.joined_taps;
    t.a = x + s.a + m0 * s.lda + channel_in + k;
    t.lda = s.lda;
    t.tap_y = g.tap_y;
    t.taps_y = s.ky1 - s.ky0;
    if (copied) {
      Real* copy = static_cast<Real*>(scratch) +
                   (s.first_tile + run.first) % g.block_tiles * kTileRows * g.copied_lda;
      // Pixels of padding alone have no taps, and no place in x.
      if (first_panel && kernel_w > 0)
        for (int32_t m = 0; m < rows; ++m)
          copy_taps(g, t.a + m * s.lda, t.taps_y, kernel_w, copy + m * g.copied_lda);
      t.a = copy;
      t.lda = g.copied_lda;
      t.tap_y = kernel_w * g.in_c;
    }
    t.taps_x = joined && whole ? 1 : kernel_w;
    if (whole) t.k = joined ? kernel_w * g.in_c : g.in_c;
    t.w = weights + (s.ky0 * g.kernel_w + s.kx0) * g.in_c * t.ldw;
    Real* out = element(y, s.c + m0 * s.ldc + channel_out, g.short_out);
    const bool rounds = g.short_out && apply;
    t.c = rounds ? floats : out;
    t.ldc = rounds ? t.columns : s.ldc;
    t.residual = k > 0    ? t.c
                 : residual ? element(residual, s.r + m0 * s.ldr + channel_out, g.short_residual)
                            : nullptr;
    t.ldr = k > 0 ? s.ldc : s.ldr;
    t.prefetch = weights + g.panel_elems + run.number * half_panel;
    t.prefetches = run.prefetches;
    t.count = run.count;
    multiply_tile(kTile[tile_vectors(t.columns) - 1][rows - 1], t);
    if (apply && t.ldc == t.columns) activate(t.c, run.count * rows * t.ldc, g.activation);
    else if (apply) activate_rows(t.c, run.count * rows, t.ldc, t.columns, g.activation);
#if defined(LITE_PAIRS)
    for (int32_t m = 0; rounds && m < rows; ++m)
      round_floats(floats + m * t.columns, reinterpret_cast<uint16_t*>(out) + m * s.ldc, t.columns);
#endif
  };
  const int64_t at_once = whole ? range.end - range.begin : g.block_tiles;
  for (int64_t block = range.begin; block < range.end; block += at_once) {
    const int64_t end = block + at_once < range.end ? block + at_once : range.end;
    k = 0;
    do {
      const int64_t left = g.in_c - k;
      const bool last = left <= g.depth_step;
      if (!whole) {
        t.k = last ? left : g.depth_step;
        half_panel = t.k * kTileColumns / 2;
      }
      t.lo = last ? g.lo : -INFINITY;
      t.hi = last ? g.hi : INFINITY;
      t.hard_swish = last && act == Act::kHardSwish;
      apply = last && activates;
      for_each_run(g.list, {block, end, range.panel_begin, range.panel_end}, g.block_tiles,
                   one_by_one ? 1 : g.block_tiles, enter, body);
    } while ((k += g.depth_step) < g.in_c);
  }
}

}  // namespace

void run_tap_gemm(const TapGemm& g, const Real* x, Real* y, const Real* residual, int thread,
                  void* scratch) {
#if defined(LITE_GROUPED_CONV)
  if (g.of_groups) {
    const PixelView& out = g.grouped.shape.out;
    const GridPart part = part_of(g.grid, out.images * out.h, 1, g.grouped.vectors, thread);
    return run_grouped_conv(g.grouped, x, y, residual, part, scratch);
  }
#endif
#if defined(LITE_STRASSEN)
  if (g.is_strassen) return run_strassen(g, x, y, residual, thread, scratch);
#endif
#if defined(LITE_PACKED_TILE)
  if (g.of_image) {
    const PixelView& out = g.image.shape.out;
    const GridPart part = part_of(g.grid, out.images * out.h, 1, g.panels, thread);
    return run_image_conv(g.image, x, y, part, scratch);
  }
  if (g.packs) {
    const PixelView& out = g.packed.shape.out;
    const GridPart part = part_of(g.grid, out.images * out.h * out.w, kPackedRows, g.panels, thread);
    return run_packed_gemm(g.packed, x, y, residual, part, static_cast<float*>(scratch));
  }
#endif
  run_tiles(g, x, y, residual, part_of(g.grid, g.list.tiles, 1, g.groups * g.panels, thread),
            scratch);
}

void run_tap_gemm_rows(const TapGemm& g, const Real* x, Real* y, const Real* residual,
                       int64_t begin, int64_t end, void* scratch) {
#if defined(LITE_GROUPED_CONV)
  if (g.of_groups)
    return run_grouped_conv(g.grouped, x, y, residual, {begin, end, 0, g.grouped.vectors}, scratch);
#endif
#if defined(LITE_PACKED_TILE)
  if (g.of_image) return run_image_conv(g.image, x, y, {begin, end, 0, g.panels}, scratch);
  if (g.packs) {
    const int64_t w = g.row_pixels;
    return run_packed_gemm(g.packed, x, y, residual, {begin * w, end * w, 0, g.panels},
                           static_cast<float*>(scratch));
  }
#endif
  const int64_t rows = g.list.group_rows;
  run_tiles(g, x, y, residual,
            {g.list.group_tiles[begin / rows], g.list.group_tiles[(end + rows - 1) / rows], 0,
             g.groups * g.panels},
            scratch);
}

}  // namespace lite::LITE_ISA
