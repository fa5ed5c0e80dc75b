#include "grouped_conv.h"

#include "f32_tile.h"
#include "grouped_tiles.h"

#if defined(LITE_GROUPED_CONV)

namespace lite::LITE_ISA {
namespace {

constexpr bool kWideTiles = kVectorRegisters >= 32;
constexpr int kWidePixels = 14;
// NEON's vectors hold few groups and gain less: the size of the library counts for more.
constexpr bool kAllTiles = kLanes > 4;

template <int s, int kPx, bool kAll>
void set_tile(GroupedConv* g) {
  g->tile[GroupedVector::kSplat] = run_tile<GroupedVector::kSplat, s, kPx>;
  if constexpr (kAll || kPx == 7)
    g->tile[GroupedVector::kPermute] = run_tile<GroupedVector::kPermute, s, kPx>;
  if constexpr (kAll) g->tile[GroupedVector::kTwo] = run_tile<GroupedVector::kTwo, s, kPx>;
}
template <int s, bool kAll = kAllTiles>
void set_tiles(GroupedConv* g) {
  if constexpr (kWideTiles) {
    if (g->pixels == kWidePixels) return set_tile<s, kWidePixels, kAll>(g);
  }
  if constexpr (kAll) {
    if (g->pixels == 4) return set_tile<s, 4, kAll>(g);
    if (g->pixels == 1) return set_tile<1, 1, kAll>(g);
  }
  set_tile<s, 7, kAll>(g);
}

struct Pieces {
  int32_t threes, ones;             // see GroupedConv
};
Pieces pieces_of(const ConvShape& s) {
  const int64_t taps = s.kernel[1], threes = s.dilation[1] == 1 && s.stride[1] <= 2 ? taps / 3 : 0;
  return {static_cast<int32_t>(threes), static_cast<int32_t>(taps - 3 * threes)};
}

// Columns that a tile sees through three taps.
int64_t columns_of(const ConvShape& s, int64_t pixels) { return (pixels - 1) * s.stride[1] + 3; }

// Pointers of a row of taps of a tile.
int64_t row_pointers(const ConvShape& s, int64_t pixels) {
  const Pieces pieces = pieces_of(s);
  return pieces.threes * columns_of(s, pixels) + pieces.ones * pixels;
}

// Lines of x86's first-level cache that lie a multiple of 4 KiB apart share one set, of eight ways at least.
constexpr int64_t kSetsBytes = 4096, kWays = 8;
// Whether a tile finds its columns' lines there again for the next j.
bool keeps_columns(const ConvShape& s, int64_t columns) {
  int64_t sets = 1;
  const int64_t bytes = s.in.pixel * static_cast<int64_t>(sizeof(Real));
  while (sets < kSetsBytes / 64 && sets * bytes % kSetsBytes != 0) sets *= 2;
  return columns <= kWays * sets;
}

int tile_pixels(const ConvShape& s) {
  const int64_t width = s.out.w;
  const auto rounded = [&](int64_t n) { return (width + n - 1) / n * n; };
  if (kAllTiles && width < 4) return 1;
  if (kAllTiles && (width < 7 || rounded(4) * 4 <= rounded(7) * 3)) return 4;
  const bool has_wide = kWideTiles && (kAllTiles || s.group_out % kLanes == 0);
  const bool wide = has_wide && width >= kWidePixels && rounded(kWidePixels) * 8 <= rounded(7) * 9;
  return wide && keeps_columns(s, columns_of(s, kWidePixels)) ? kWidePixels : 7;
}

// How output channels [begin, begin + count) take their input; false if they cannot.
bool read_vector(const ConvShape& s, int64_t begin, int64_t count, GroupedVector* v) {
  const int64_t end = begin + count < s.out.c ? begin + count : s.out.c;
  const int64_t group = begin / s.group_out, apart = (end - 1) / s.group_out - group;
  *v = GroupedVector{};
  v->channels = static_cast<int32_t>(end - begin);
  v->first = group * s.group_in;
  v->second = v->first + s.group_in;
  if (apart == 0) return true;
  // Vectors are loaded from within the pixel: those that would reach beyond it begin earlier.
  const bool fits = (apart + 1) * s.group_in <= kLanes;
  const int64_t last = s.in.c - kLanes - (fits ? 0 : s.group_in - 1);
  if (apart * s.group_in < kLanes && last >= 0) {
    const int64_t back = v->first > last ? v->first - last : 0;
    v->spread = GroupedVector::kPermute;
    v->first -= back;
    v->step_x = !fits;
    v->step_at = fits;
    for (int64_t c = begin; c < end; ++c)
      v->at[c - begin] = static_cast<RealInt>((c / s.group_out - group) * s.group_in + back);
    return true;
  }
  v->spread = GroupedVector::kTwo;
  for (int64_t c = begin; c < end; ++c) v->at[c - begin] = c / s.group_out == group ? -1 : 0;
  return kAllTiles && apart == 1;
}

// Output channels of a vector: all lanes, or as many whole groups as can be spread; or 0: there is no way.
int64_t vector_channels(const ConvShape& s) {
  const auto can_read = [&](int64_t channels) {
    GroupedVector v;
    for (int64_t c = 0; c < s.out.c; c += channels)
      if (!read_vector(s, c, channels, &v)) return false;
    return true;
  };
  if (can_read(kLanes)) return kLanes;
  int64_t groups = kLanes / s.group_out;
  while (groups > 0 && !can_read(groups * s.group_out)) --groups;
  return groups * s.group_out;
}

// Output pixels of a row that tiles compute, some of them twice.
int64_t computed_pixels(const ConvShape& s) {
  const int64_t pixels = tile_pixels(s);
  return (s.out.w + pixels - 1) / pixels * pixels;
}

#if defined(__aarch64__)
// By executed instructions: what neighbours share takes a third of them off groups of 4, an eighth off wider
// ones, whose tap GEMM has tiles of two vectors, and little with stride 2.
bool pays(const ConvShape& s) {
  const bool narrow = s.group_out <= kLanes;
  if (!pieces_of(s).threes || s.out.w < 7) return false;
  if (s.stride[1] > 1 && !narrow && tile_pixels(s) != kWidePixels) return false;
  return computed_pixels(s) * 100 <= s.out.w * (narrow ? 140 : 110);
}
#else
// Time per output pixel and j, in products of vectors, as Zen 4 takes it.
constexpr double kSpreadCost[kSpreads] = {0, 0.5, 1.2};  // beside the products
double part_store_cost(const ConvShape& s) {
  return kWideTiles ? 0 : 12.0 / static_cast<double>(s.group_in * s.kernel[0]);
}
double cost_of(const ConvShape& s) {
  const int64_t pixels = tile_pixels(s), channels = vector_channels(s);
  const double spreads = static_cast<double>(row_pointers(s, pixels)) / static_cast<double>(pixels);
  double sum = 0;
  GroupedVector v;
  for (int64_t c = 0; c < s.out.c; c += channels) {
    read_vector(s, c, channels, &v);
    sum += static_cast<double>(s.kernel[1]) + kSpreadCost[v.spread] * spreads;
    if (v.channels < kLanes) sum += part_store_cost(s);
  }
  return sum * static_cast<double>(computed_pixels(s)) / static_cast<double>(s.out.w);
}
double tap_gemm_cost(const ConvShape& s) {
  const int64_t join = groups_to_join(s, kLanes), columns = join * s.group_out;
  double block = static_cast<double>((columns + kLanes - 1) / kLanes * join * s.kernel[1]);
  if (columns > kLanes && !kWideTiles) block /= 1.15;  // a tile of two vectors keeps AVX2 busier
  if (columns % kLanes != 0) block += part_store_cost(s);
  return block * static_cast<double>(s.groups) / static_cast<double>(join);
}

bool pays(const ConvShape& s) {
  if (cost_of(s) < tap_gemm_cost(s)) return true;
  // No lane is idle either way: a tile of one vector gains by what neighbours share. The rows of small maps
  // are short, and the tap GEMM leaves out columns of padding.
  const bool shares = !kWideTiles || (pieces_of(s).threes && s.out.w >= kWidePixels);
  return s.group_out == kLanes && shares && keeps_columns(s, columns_of(s, 7));
}
#endif

}  // namespace

bool is_grouped_conv(const ConvShape& s) {
  if (s.groups < 2 || s.group_in < 1 || s.group_out < 1 || s.out.w < 1) return false;
  for (int i = 0; i < 2; ++i)
    if (s.kernel[i] < 1) return false;
  return s.kernel[0] * s.kernel[1] * s.group_in <= kLongestSum && vector_channels(s) > 0 && pays(s);
}

bool prepare_grouped_conv(const ConvShape& s, Env& env, GroupedConv* g) {
  g->shape = s;
  g->channels = vector_channels(s);
  g->vectors = (s.out.c + g->channels - 1) / g->channels;
  const Pieces pieces = pieces_of(s);
  g->threes = pieces.threes;
  g->ones = pieces.ones;
  g->pixels = tile_pixels(s);
  if (g->threes && s.stride[1] == 2) set_tiles<2>(g);
  else set_tiles<1>(g);
  g->row_elems = s.kernel[1] * s.group_in * kLanes;
  g->vector_elems = s.kernel[0] * g->row_elems;
  GroupedVector* vector =
      static_cast<GroupedVector*>(env.allocate(static_cast<size_t>(g->vectors + 1) * sizeof(GroupedVector)));
  Real* zeros = static_cast<Real*>(env.allocate(static_cast<size_t>(s.in.c + 1) * sizeof(Real)));
  if (!vector || !zeros) return env.out_of_memory();
  for (int64_t i = 0; i < g->vectors; ++i) read_vector(s, i * g->channels, g->channels, vector + i);
  g->vector = vector;
  g->zeros = zeros;
  g->scratch_bytes = static_cast<size_t>(s.kernel[0] * row_pointers(s, g->pixels)) * sizeof(Real*);
  return true;
}

namespace {

// The pixels that the tile at x sees through rows of taps [ky0, ky1); those outside point at zeros.
void point_columns(const GroupedConv& g, const Real* image, int64_t y, int64_t x, int64_t ky0, int64_t ky1,
                   const Real** pointers) {
  const ConvShape& s = g.shape;
  const int64_t low = -s.in.halo[1], high = s.in.w + s.in.halo[3], stride = s.stride[1];
  const int64_t columns = columns_of(s, g.pixels);
  for (int64_t ky = ky0; ky < ky1; ++ky) {
    const Real* row = image + (y * s.stride[0] - s.pad[0] + ky * s.dilation[0]) * s.in.row;
    const auto pixel = [&](int64_t at) {
      return at >= low && at < high ? row + at * s.in.pixel : g.zeros;
    };
    int64_t first = x * stride - s.pad[1];
    for (int i = 0; i < g.threes; ++i, first += 3)
      for (int64_t c = 0; c < columns; ++c) *pointers++ = pixel(first + c);
    for (int i = 0; i < g.ones; ++i, first += s.dilation[1])
      for (int64_t p = 0; p < g.pixels; ++p) *pointers++ = pixel(first + p * stride);
  }
}

}  // namespace

void run_grouped_conv(const GroupedConv& g, const Real* x, Real* y, const Real* residual,
                      const GridPart& part, void* scratch) {
  const auto [row_begin, row_end, vector_begin, vector_end] = part;
  const ConvShape& s = g.shape;
  const Act act = s.activation.act;
  const bool apply = act != Act::kNone && act != Act::kClip && act != Act::kHardSwish;
  const Real** const pointers = static_cast<const Real**>(scratch);
  const int64_t begin = vector_begin * g.channels;
  const int64_t end = vector_end < g.vectors ? vector_end * g.channels : s.out.c;
  GroupedTile t{};
  t.pointers = pointers;
  t.threes = g.threes;
  t.ones = g.ones;
  t.group_in = s.group_in;
  t.out_pixel = s.out.pixel;
  t.residual_pixel = s.residual.pixel;
  t.lo = act == Act::kClip ? s.activation.a : -INFINITY;
  t.hi = act == Act::kClip ? s.activation.b : INFINITY;
  t.hard_swish = act == Act::kHardSwish;
  for (int64_t row = row_begin; row < row_end; ++row) {
    const int64_t image = row / s.out.h, oy = row - image * s.out.h;
    int64_t ky0, ky1;
    tap_window(oy * s.stride[0] - s.pad[0], s.dilation[0], s.kernel[0], -s.in.halo[0],
               s.in.h + s.in.halo[2], &ky0, &ky1);
    t.rows = ky1 - ky0;
    const Real* const from = x + s.in.origin + image * s.in.image;
    Real* const out = y + s.out.origin + image * s.out.image + oy * s.out.row;
    const Real* const add =
        residual ? residual + s.residual.origin + image * s.residual.image + oy * s.residual.row : nullptr;
    for (int64_t tile = 0; tile < s.out.w; tile += g.pixels) {
      const int64_t ox = tile + g.pixels <= s.out.w ? tile : s.out.w - g.pixels;
      point_columns(g, from, oy, ox, ky0, ky1, pointers);
      for (int64_t v = vector_begin; v < vector_end; ++v) {
        t.vector = g.vector + v;
        t.weights = g.weights + v * g.vector_elems + ky0 * g.row_elems;
        t.bias = g.bias + v * kLanes;
        t.out = out + ox * s.out.pixel + v * g.channels;
        t.residual = add ? add + ox * s.residual.pixel + v * g.channels : nullptr;
        g.tile[t.vector->spread](t);
      }
      if (apply)
        activate_rows(out + ox * s.out.pixel + begin, g.pixels, s.out.pixel, end - begin, s.activation);
    }
  }
}

}  // namespace lite::LITE_ISA

#endif
