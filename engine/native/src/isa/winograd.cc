// 3x3 and 5x5 stride-1 convolution by Winograd's minimal filtering F(m,3), F(m,5): Lavin & Gray 2015.
//
// A block of output tiles (m x m pixels) at a time, small enough for the second-level cache:
//   V[xi][tile][channel]  = Bt d B      input transform, lanes are channels
//   M[xi][tile][column]   = V[xi] U[xi] one GEMM per transform point, by the ordinary tile
//                                       (packed: M[tile][xi][column]); some panels take turns
//                                       over V[xi]
//   Y                     = At M A      output transform with bias, residual, activation
// Weights are transformed once: U[panel][xi][channel][columns]. Padding is a pointer to zeros.
// Where there is a tile of packed rows (packed_tile.h), V is packed: [xi][every 12 tiles][channel].
#include <math.h>

#include "activation.h"
#include "core_kind.h"
#include "ops/conv_strips.h"
#include "f32_tile.h"
#include "quad_tile.h"
#include "tap_gemm.h"
#include "winograd_tiles.h"

namespace lite::LITE_ISA {
namespace {

// V as the input transform leaves it: of a block or, where it is packed then, of one packed tile.
int64_t v_rows(const Winograd& w) { return kPacks ? kPackedRows : w.block; }
int64_t v_elems(const Winograd& w) {
  return w.points * v_rows(w) * w.row_elems;
}
int64_t m_elems(const Winograd& w) {  // of one panel
  return w.points * (w.block * kTileColumns + kLanes);
}

#if defined(LITE_PACKED_TILE)
int64_t packed_tiles(int64_t tiles) { return (tiles + kPackedRows - 1) / kPackedRows; }
int64_t packed_tile_elems(const Winograd& w) { return w.depth * kPackedRows + kPackedSlack; }
int64_t packed_elems(const Winograd& w) {
  return kPacks ? w.points * packed_tiles(w.block) * packed_tile_elems(w) : 0;
}
#else
int64_t packed_elems(const Winograd&) { return 0; }
#endif

void transform_weights(const ConvShape& s, const Winograd& w, Real* out) {
  const Line &down = w.form->down, &along = w.form->along;
  const float* weights = s.weights->as<float>();
  const int taps = down.taps;
  for (int64_t n0 = 0; n0 < s.out.c; n0 += kTileColumns) {
    const int64_t panel = n0 / kTileColumns, columns = panel_columns(s.out.c, panel);
    const int64_t valid = s.out.c - n0 < columns ? s.out.c - n0 : columns;
    for (int64_t c = 0; c < w.channels; ++c) {  // a row of columns is written as a whole
      double g[kMostTaps * kMostTaps][kTileColumns] = {}, half[kMostPoints][kMostTaps][kTileColumns] = {};
      for (int64_t n = 0; n < valid; ++n)
        for (int k = 0; k < taps * taps; ++k)
          g[k][n] = weights[((n0 + n) * w.channels + c) * taps * taps + k];
      for (int i = 0; i < down.weight_rows; ++i)
        for (int x = 0; x < taps; ++x)
          for (int y = 0; y < taps; ++y)
            for (int n = 0; n < kTileColumns; ++n)
              half[i][x][n] += down.weights[i * taps + y] * g[y * taps + x][n];
      for (int i = 0; i < down.weight_rows; ++i)
        for (int j = 0; j < along.weight_rows; ++j) {
          double sum[kTileColumns] = {};
          for (int x = 0; x < taps; ++x)
            for (int n = 0; n < kTileColumns; ++n)
              sum[n] += along.weights[j * taps + x] * half[i][x][n];
          Real* row = out + panel * w.panel_elems +
                      ((i * along.weight_rows + j) * w.depth + c) * columns;
          for (int64_t n = 0; n < valid; ++n) row[n] = static_cast<Real>(sum[n]);
        }
    }
  }
}

bool prepare(Step& step, Env& env, const Form& form) {
  const Line &down = form.down, &along = form.along;
  ConvShape s;
  if (!read_conv(step, env, false, &s, kReal)) return false;
  Winograd* w = static_cast<Winograd*>(env.allocate(sizeof(Winograd)));
  if (!w) return env.out_of_memory();
  step.state = w;
  if (!describe(s, form, env, w)) return false;
  w->depth = kPacks ? w->padded_channels : w->channels;
  // One cache line more than the channels: rows of a power of two would share cache sets.
  w->row_elems = w->padded_channels + 16;
  w->panels = panel_count(s.out.c);
  w->panel_elems = down.weight_rows * along.weight_rows * w->depth * kTileColumns;

  const int64_t weight_elems = w->panels * w->panel_elems;
  const Recipe recipe{LITE_ISA_NAME " " LITE_REAL " points",
                      s.weights->data,
                      s.weights->bytes,
                      {down.taps, down.outputs, down.points, down.stride, along.taps, along.outputs, along.points,
                       along.stride, w->channels, w->depth, s.out.c}};
  bool made;
  Real* weights = static_cast<Real*>(
      env.allocate_packed(recipe, (weight_elems + kPackedSlack) * sizeof(Real), &made));
  if (!weights) return env.out_of_memory();
  if (!made) transform_weights(s, *w, weights);
  w->weights = weights;

  const double tile_cost = static_cast<double>(w->points) * w->channels * kTileRows;
  w->grid = choose_grid(env.threads, (w->tiles + kTileRows - 1) / kTileRows, w->panels, tile_cost,
                        static_cast<double>(w->tiles) * w->points * w->channels / 4,
                        weight_elems / 4.0);
  // V has to stay cached while all panels pass over it, but large weights should pass once.
  const int64_t mine = (w->tiles + w->grid.by_tiles - 1) / w->grid.by_tiles;
  const double l2 = static_cast<double>(env.l2_bytes);
  const double room = weight_elems * kBytes > 4 * l2 ? 2 * l2 : 0.625 * l2;
  const int64_t rows = kPacks ? kPackedRows : kTileRows;
  int64_t block = static_cast<int64_t>(room / (kBytes * w->points * w->row_elems)) / rows * rows;
  if (block < 2 * rows) block = 2 * rows;
  const int64_t blocks = mine ? (mine + block - 1) / block : 1;
  w->block = (mine + blocks - 1) / blocks;
  if (kPacks) w->block = (w->block + rows - 1) / rows * rows;
  // Where V and the weights of a panel do not stay cached together, V is read once for as many panels
  // as let M take half the cache.
  const int64_t fit = static_cast<int64_t>(0.5 * l2 / (kBytes * m_elems(*w)));
  const bool evicts = kBytes * (v_elems(*w) + w->panel_elems) > 0.5 * l2;
  w->group = kPacks || !evicts || fit < 1 ? 1 : fit < w->panels ? fit : w->panels;
  const bool dilated = s.dilation[0] != 1 || s.dilation[1] != 1;  // tiles take rows from far apart
  if (step.by_rows && s.out.images == 1 && !dilated) step.rows = row_map(s, down.outputs);
  step.scratch_bytes = sizeof(Real) * (v_elems(*w) + w->group * m_elems(*w) +
                                       packed_elems(*w));
  set_variant(step, LITE_REAL "_conv2d_winograd%s__" LITE_ISA_NAME "_%dx%d", form.name,
              static_cast<int>(rows), kTileColumns);
  return true;
}

#if defined(LITE_PACKED_TILE)
// The input transform of `count` tiles from `first` on, packed: [xi][every 12 tiles].
void transform_and_pack(const Winograd& w, const float* x, int64_t first, int64_t count, float* v,
                        float* packed, bool quads) {
  const int64_t v_stride = kPackedRows * w.row_elems, tile = packed_tile_elems(w);
  const int64_t tiles = packed_tiles(count);
  for (int64_t i = 0; i < tiles; ++i, packed += tile) {
    const int64_t done = i * kPackedRows;
    const int64_t rows = count - done < kPackedRows ? count - done : kPackedRows;
    for (int64_t k = 0; k < rows; ++k)
      w.form->input(w, x, tile_at(w, first + done + k), v + k * w.row_elems, v_stride);
    for (int xi = 0; xi < w.points; ++xi) {
      const float* from[kPackedRows];
      for (int64_t k = 0; k < kPackedRows; ++k)  // groups of four are filled with the last one
        from[k] = v + xi * v_stride + (k < rows ? k : rows - 1) * w.row_elems;
      float* out = packed + xi * tiles * tile;
      if (quads && rows == kPackedRows) pack_quads(from, w.depth, out);
      else for (int64_t k = 0; k < rows; k += 4) out = pack_run(from + k, w.depth, out);
    }
  }
}

// M of one panel: [tile][point][columns].
void multiply_packed(const Winograd& w, const Tile& t, int64_t count, const float* packed,
                     float* products, bool quads) {
  PackedTile p{};
  p.a = packed;
  p.a_next = packed_tile_elems(w);
  p.k = w.depth;
  p.group = 4 * w.depth;
  p.ldc = static_cast<ptrdiff_t>(w.points) * kTileColumns;
  p.lo = t.lo;
  p.hi = t.hi;
  p.columns = t.columns;
  p.tasks = tasks_of(p, false, false);
  const int vectors = tile_vectors(t.columns);
  const int64_t whole = count / kPackedRows, rest = count % kPackedRows;
  const PackedTileFn whole_tile =
      quads ? kQuadTile[vectors - 1] : kPackedTile[vectors - 1][kPackedRows - 1];
  const PackedTileFn last_tile = rest ? rest_tile(vectors, rest, quads) : nullptr;
  for (int xi = 0; xi < w.points; ++xi) {
    p.w = t.w + w.weight_of[xi] * w.depth * t.ldw;
    p.c = products + xi * kTileColumns;
    p.tiles = whole;
    p.rows = kPackedRows;
    p.a_k = quads ? kPackedRows : 4;
    if (whole) multiply_packed_tile(whole_tile, p);
    p.a += whole * p.a_next;
    if (rest == 0) continue;
    p.c += whole * kPackedRows * p.ldc;
    p.tiles = 1;
    p.rows = static_cast<int32_t>(rest);
    p.a_k = 4;
    multiply_packed_tile(last_tile, p);
    p.a += p.a_next;
  }
}
#endif

// Where the weights of a panel and transform point lie.
LITE_INLINE void set_panel(const Winograd& w, int64_t panel, int xi, Tile* t) {
  t->columns = static_cast<int32_t>(panel_columns(w.out.c, panel));
  t->ldw = t->ldc = t->columns;
  t->w = w.weights + panel * w.panel_elems + w.weight_of[xi] * w.depth * t->ldw;
}

// Tiles of all images and panels of weights.
void run_part(const Step& step, const Real* x, Real* y, const GridPart& part, void* scratch) {
  const Winograd& w = *static_cast<const Winograd*>(step.state);
  const int points = w.points;
  const Real* residual = w.has_residual ? step.inputs[3]->as<Real>() : nullptr;
  const auto [begin, end, panel_begin, panel_end] = part;

  Real* v = static_cast<Real*>(scratch);
  Real* products = v + v_elems(w);
  const int64_t v_stride = v_rows(w) * w.row_elems;
#if defined(LITE_PACKED_TILE)
  Real* packed = products + w.group * m_elems(w);
  const bool quads = !issues_in_order();
#endif
  const int64_t m_stride = w.block * kTileColumns + kLanes, m_panel = m_elems(w);
  const Real zero_bias[kTileColumns] = {};
  Tile t{};
  t.lda = w.row_elems;
  t.taps_y = t.taps_x = 1;
  t.k = w.channels;
  t.bias = zero_bias;
  t.lo = -INFINITY;
  t.hi = INFINITY;
  for (int64_t block = begin; block < end; block += w.block) {
    const int64_t count = end - block < w.block ? end - block : w.block;
#if defined(LITE_PACKED_TILE)
    if (kPacks) transform_and_pack(w, x, block, count, v, packed, quads);
#endif
    for (int64_t i = 0; i < count && !kPacks; ++i)
      w.form->input(w, x, tile_at(w, block + i), v + i * w.row_elems, v_stride);
    const TileSplit split = split_rows(count);
    for (int64_t first = panel_begin; first < panel_end; first += w.group) {
      const int64_t last = first + w.group < panel_end ? first + w.group : panel_end;
#if defined(LITE_PACKED_TILE)
      if (kPacks) {
        set_panel(w, first, 0, &t);
        multiply_packed(w, t, count, packed, products, quads);
      }
#endif
      for (int xi = 0; xi < points && !kPacks; ++xi) {
        for (int64_t p = first; p < last; ++p) {
          set_panel(w, p, xi, &t);
          Tile next;
          const bool has_next = p + 1 < last || xi + 1 < points || last < panel_end;
          if (p + 1 < last) set_panel(w, p + 1, xi, &next);
          else if (xi + 1 < points) set_panel(w, first, xi + 1, &next);
          else set_panel(w, has_next ? last : first, 0, &next);
          const int ahead = has_next && split.tiles > 1 ? 2 : 0;
          for_each_height(split, [&](int64_t m0, int height, int tiles) {
            const int before = m0 ? split.larger : 0;
            t.a = v + xi * v_stride + m0 * w.row_elems;
            t.c = products + (p - first) * m_panel + xi * m_stride + m0 * t.ldc;
            t.prefetch = next.w + before * w.channels * kLanes;
            t.prefetches = before < ahead ? ahead - before : 0;
            t.count = tiles;
            multiply_tile(kTile[t.columns > kLanes][height - 1], t);
          });
        }
      }
      for (int64_t p = first; p < last; ++p) {
        set_panel(w, p, 0, &t);
        const int64_t n0 = p * kTileColumns;
        const int64_t left = w.out.c - n0, columns = left < kTileColumns ? left : kTileColumns;
        w.form->output(w, products + (p - first) * m_panel,
                       kPacks ? points * kTileColumns : t.ldc, m_stride, block, count, n0, columns,
                       y, residual);
      }
    }
  }
}

void run(const Step& step, int, int thread, int, void* scratch) {
  const Winograd& w = *static_cast<const Winograd*>(step.state);
  const GridPart part = part_of(w.grid, w.tiles, 1, w.panels, thread);
  run_part(step, step.inputs[0]->as<Real>(), step.outputs[0]->as<Real>(), part, scratch);
}

void run_rows(const Step& step, const RowRange& r, void* scratch) {
  const Winograd& w = *static_cast<const Winograd*>(step.state);
  const int64_t m = w.form->down.outputs;
  run_part(step, reinterpret_cast<const Real*>(r.input), reinterpret_cast<Real*>(r.output),
           {r.begin / m * w.tiles_w, (r.end + m - 1) / m * w.tiles_w, 0, w.panels}, scratch);
}

// Not kDivisible: a share reads all weights, or transforms for itself, and ResNet-18's layers take 1.04 of the time.
constexpr uint32_t kFlags = kAcceptsPitch | kAcceptsHalo;
constexpr Form kF23 = form_of<F23, F23>("23");
bool prepare_f23(Step& step, Env& env) { return prepare(step, env, kF23); }

#if defined(LITE_FP16)
// F(4,3) would lose too much to 11 bits.
const Kernel kWinograd[] = {
    {"Conv", "f16_conv2d_winograd23", prepare_f23, run, kFlags, nullptr, run_rows},
};
#else
constexpr Form kF43 = form_of<F43, F43>("43");
bool prepare_f43(Step& step, Env& env) { return prepare(step, env, kF43); }

// Cycles per input and output channel, where a weight takes `weight` cycles to arrive.
double cost_of(const Form& form, const ConvShape& s, double weight) {
  const Line &down = form.down, &along = form.along;
  const int64_t tiles = tiles_along(s.out.h, s.dilation[0], down.outputs, nullptr) *
                        tiles_along(s.out.w, s.dilation[1], along.outputs, nullptr) * s.out.images;
  const double products = down.points * along.points * static_cast<double>(tiles) / (2 * kLanes);
  const double weights = down.weight_rows * along.weight_rows * weight;
  if (!kPacks) return products + weights;
  return products > weights ? products : weights;  // in order, and so while others are multiplied
}

// What transforms add to the products of F(4,3), where pixels lie far apart, and of F(2,5), which has four
// times as many tiles.
constexpr double kTransforms = 1.5;
constexpr Form kF25 = form_of<F25, F25>("25"), kF25x45 = form_of<F25, F45>("25x45");
constexpr Form kF23By2 = form_of<F23By2, F23By2>("23_by2");
#if defined(LITE_PACKED_TILE)
constexpr Form kF43x23 = form_of<F43, F23>("43x23");
// Tiles of 5 or 6 columns multiply 7 or 11 % less where they fit a map, and round twice as much as F(4,3). On x86,
// whose transforms need more registers than there are, 4 % is left of it.
constexpr Form kF43x53 = form_of<F43, F53>("43x53"), kF43x63 = form_of<F43, F63>("43x63");
constexpr double kWeight = 1.2;   // 8 GB/s at 2.4 GHz
#else
constexpr double kWeight = 0.4;
#endif

// Taps of all outputs along an axis that the tap GEMM multiplies.
int64_t taps_along(const ConvShape& s, int axis) {
  int64_t begin, end, taps = 0;
  for (int64_t o = 0; o < (axis ? s.out.w : s.out.h); ++o) {
    tap_window(o * s.stride[axis] - s.pad[axis], s.dilation[axis], s.kernel[axis], 0,
               axis ? s.in.w : s.in.h, &begin, &end);
    taps += kPacks ? s.kernel[axis] : end - begin;
  }
  return taps;
}

constexpr double kNarrow = 1.06;    // see suits_columns; measured on Zen 4

// Cycles of the tap GEMM per input and output channel.
double cost_of_taps(const ConvShape& s) {
  return static_cast<double>(s.out.images * taps_along(s, 0) * taps_along(s, 1)) / (2 * kLanes);
}

// Of stride 2 or dilated only where less to multiply makes up for the transforms; the rest is the tap GEMM's.
bool suits(const Step& step, Env& env) {
  ConvShape s;
  if (!read_conv(step, env, false, &s, kReal) || !suits_columns(s, env, kNarrow)) return false;
  const bool dilated = s.dilation[0] != 1 || s.dilation[1] != 1;
  const bool once = s.stride[0] == 1 && s.stride[1] == 1;
  if (once && !dilated) return true;
  if (s.kernel[0] != 3 || s.kernel[1] != 3 || s.groups != 1 || s.in.c < 32 || s.out.c < 32)
    return false;
  const double direct = cost_of_taps(s);
  if (once) return kTransforms * cost_of(kF43, s, kWeight) < direct;
  return !dilated && s.stride[0] == 2 && s.stride[1] == 2 && cost_of(kF23By2, s, kWeight) < direct;
}

const Form& form_of_5x5(const ConvShape& s) {
  return cost_of(kF25x45, s, kWeight) < cost_of(kF25, s, kWeight) ? kF25x45 : kF25;
}

bool suits_5x5(const Step& step, Env& env) {
  ConvShape s;
  return read_conv(step, env, false, &s, kReal) && s.kernel[0] == 5 && s.kernel[1] == 5 &&
         suits_columns(s, env, kNarrow) && kTransforms * cost_of(form_of_5x5(s), s, kWeight) < cost_of_taps(s);
}

bool prepare_5x5(Step& step, Env& env) {
  ConvShape s;
  return read_conv(step, env, false, &s, kReal) && prepare(step, env, form_of_5x5(s));
}

// Fewer points on a small map, where reading F(4,3)'s weights would cost more than they save.
bool prepare_either(Step& step, Env& env) {
  ConvShape s;
  if (!read_conv(step, env, false, &s, kReal)) return false;
  const Form* form = &kF43;
  const auto prefer = [&](const Form& other, double weight) {
    if (cost_of(other, s, weight) <= cost_of(*form, s, weight)) form = &other;
  };
#if defined(LITE_PACKED_TILE)
  prefer(kF43x53, kWeight);
  prefer(kF43x63, kWeight);
  prefer(kF43x23, kWeight);
  prefer(kF23, kWeight);
#else
  prefer(kF23, s.weights->bytes > env.l2_bytes ? 0.4 : 0.2);  // fetched ahead, but from afar
#endif
  if (s.stride[0] == 2) form = &kF23By2;
  return prepare(step, env, *form);
}

const Kernel kWinograd[] = {
    {"Conv", "f32_conv2d_winograd23", prepare_f23, run, kFlags, nullptr, run_rows},
    {"Conv", "f32_conv2d_winograd43", prepare_f43, run, kFlags, nullptr, run_rows},
    {"Conv", "f32_conv2d_3x3", prepare_either, run, kFlags, suits, run_rows},
    {"Conv", "f32_conv2d_5x5", prepare_5x5, run, kFlags, suits_5x5, run_rows},
    // On AMX products; without, a quarter of the multiplications in float32 is the fastest.
    {"Conv", "bf16_conv2d_3x3", prepare_either, run, kFlags},
};
#endif

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(winograd, kWinograd)
