#include "amx_gemm.h"

namespace lite::LITE_ISA {
namespace {

int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }
int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

// Splits the bytes of one tap into equal tiles: of whole 4 bytes, without a rest when `exact`.
bool split_depth(int64_t bytes, bool exact, int32_t* tiles, int32_t* tile_bytes) {
  const int64_t least = (bytes + kAmxDepthBytes - 1) / kAmxDepthBytes;
  for (int64_t n = least; n <= least + (exact ? 2 : 0); ++n) {
    const int64_t size = round_up((bytes + n - 1) / n, 4);
    if (exact && size * n != bytes) continue;
    *tiles = static_cast<int32_t>(n);
    *tile_bytes = static_cast<int32_t>(size);
    return true;
  }
  return false;
}

// Cycles of one k tile of one tile of sums: of two parts all products but that of the second ones.
double step_cost(const AmxGemm& g) { return g.parts == 1 ? 16 : 48; }

void set_rows(int64_t rows, AmxGemm* g) {
  g->total = (rows - 1) * g->slots + g->out.w;
  g->plane_rows = static_cast<int32_t>(((rows - 1) * g->planes + g->reach_rows + g->planes - 1) /
                                       g->planes);
  g->blocks = static_cast<int32_t>((g->total + kAmxBlock - 1) / kAmxBlock);
}

struct alignas(64) TileConfig {
  uint8_t palette, start_row, reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
};

}  // namespace

bool plan_amx(ConvShape s, int element_bytes, bool in_place, const Env& env, AmxGemm* g, int parts,
              double vector_share, bool by_rows) {
  *g = AmxGemm{};
  g->parts = parts;
  const int64_t join = groups_to_join(s, kLanes), kh = s.kernel[0], kw = s.kernel[1];
  if (!by_rows) flatten_pointwise(&s);
  g->groups = s.groups / join;
  g->in_c = s.group_in * join;
  g->out_c = s.group_out * join;
  g->source = s.in;
  g->out = s.out;
  g->residual = s.has_residual ? s.residual : PixelView{};
  g->group_bytes = g->in_c * element_bytes;
  g->source_column = 1;
  if (s.out.images * s.out.h * s.out.w == 0 || g->in_c == 0 || g->out_c == 0) return false;
  // Every output reads the pixel in its place, and they lie one after the other; enough of them for
  // the last block, which begins earlier rather than read behind the input.
  const bool pointwise = kh == 1 && kw == 1 && s.stride[0] == 1 && s.stride[1] == 1 &&
                         s.pad[0] == 0 && s.pad[1] == 0 && s.in.h == s.out.h &&
                         s.in.w == s.out.w && (s.in.h == 1 || s.in.row == s.in.w * s.in.pixel);
  if (in_place && pointwise && (by_rows ? s.in.w : s.in.h * s.in.w) >= kAmxBlock &&
      split_depth(g->group_bytes, true, &g->k_tiles, &g->k_bytes)) {
    g->padded = g->group_bytes;
    g->pixel = g->lda = s.in.pixel * element_bytes;
    g->taps = 1;
    g->image = s.in.image * element_bytes;
    g->slots = s.in.w;
    g->total = s.in.h * s.in.w;
    g->planes = g->plane_rows = 1;
  } else {
    g->copied = true;
    int64_t stride_x = s.stride[1];
    if (kw == 1 && stride_x > 1 && s.pad[1] == 0) g->source_column = stride_x, stride_x = 1;
    const int64_t width = (s.in.w + g->source_column - 1) / g->source_column;
    const int64_t narrow = round_up(g->group_bytes, 4);
    split_depth(g->group_bytes, false, &g->k_tiles, &g->k_bytes);
    g->padded = int64_t{g->k_tiles} * g->k_bytes;
    int32_t row_tiles, row_bytes;
    split_depth(kw * narrow, false, &row_tiles, &row_bytes);
    g->joined = s.dilation[1] == 1 && g->groups == 1 && row_tiles < kw * g->k_tiles;
    if (g->joined) g->k_tiles = row_tiles, g->k_bytes = row_bytes, g->padded = narrow;
    g->taps = static_cast<int32_t>(g->joined ? kh : kh * kw);
    g->pixel = g->groups * g->padded;
    // Rows of tiles must not share sets of the first-level cache.
    if (element_bytes == 2 && g->pixel % 512 == 0) g->pixel += 64;
    g->source_left = larger(s.pad[1], 0);
    g->source_top = s.pad[0];
    if (s.pad[1] < 0 || s.in.halo[0] || s.in.halo[1] || s.in.halo[2] || s.in.halo[3]) return false;
    const int64_t reach = (s.out.w - 1) * stride_x + (kw - 1) * s.dilation[1] + 1;
    const int64_t right = reach - g->source_left - width;
    const int64_t row_pixels = round_up(
        larger(width + larger(g->source_left, right), s.out.w * stride_x), stride_x);
    g->row = row_pixels * g->pixel;
    g->lda = stride_x * g->pixel;
    g->slots = row_pixels / stride_x;
    g->planes = static_cast<int32_t>(s.stride[0]);
    g->reach_rows = (kh - 1) * s.dilation[0] + 1;
    for (int64_t ky = 0; ky < kh; ++ky)
      if (ky * s.dilation[0] % s.stride[0] < 64)
        g->used_planes |= uint64_t{1} << (ky * s.dilation[0] % s.stride[0]);
    set_rows(s.out.h, g);
    g->plane = g->plane_rows * g->row;
    g->image = g->planes * g->plane + round_up((g->source_left + 1) * g->pixel, 64);
  }
  g->blocks = static_cast<int32_t>((g->total + kAmxBlock - 1) / kAmxBlock);
  g->panels = (g->out_c + kAmxColumns - 1) / kAmxColumns;
  const int64_t steps = int64_t{g->taps} * g->k_tiles;
  g->panel_bytes = parts * steps * g->k_bytes * kAmxColumns;
  g->group_weight_bytes = (g->panels - 1) * g->panel_bytes +
                          parts * steps * g->k_bytes * amx_panel_columns(*g, g->panels - 1);
  // In cycles, against products of vectors: two of 64 bytes or 16 floats a cycle, one of 32 bf16, 85 %
  // of that.
  // Sums that leave tiles through memory cost twice what sums in registers do.
  const double images = static_cast<double>(g->source.images);
  const double tiles = images * static_cast<double>((g->total + kAmxRows - 1) / kAmxRows) *
                       static_cast<double>(g->groups * ((g->out_c + kLanes - 1) / kLanes));
  const bool runs = g->groups * g->group_bytes == g->pixel && g->source_column == 1;
  const double copied_pixels = images * static_cast<double>(g->source.h * g->source.w);
  const double copy =
      !g->copied ? 0
                 : parts * images * static_cast<double>(g->image) / 16 +
                       (runs ? 0 : (parts > 1 && g->group_bytes < 16 ? 40 : 3) * copied_pixels);
  const double mine = tiles * (step_cost(*g) * static_cast<double>(steps) + 80) + copy + 200;
  const double depth = static_cast<double>(kh * kw * round_up(g->in_c, 4 / element_bytes));
  const double theirs = static_cast<double>(s.out.images * s.out.h * s.out.w) *
                        static_cast<double>(g->groups * ((g->out_c + kLanes - 1) / kLanes)) *
                        (vector_share * depth / (element_bytes == 1 ? 8 : 2) / 0.85 + 3);
  return mine < theirs;
}

void plan_chunks(int64_t rows, AmxGemm* g) {
  g->chunk_rows = rows;
  set_rows(rows, g);
  g->plane = g->plane_rows * g->row;
  g->image = g->planes * g->plane + round_up((g->source_left + 1) * g->pixel, 64);
}

bool outgrows_cache(const AmxGemm& g, const ConvShape& s, const Env& env) {
  return g.copied && s.out.images * s.out.h >= 4 * env.threads &&
         static_cast<double>(operand_bytes(g)) > 0.6 * static_cast<double>(env.l2_bytes);
}

int64_t rows_per_chunk(const AmxGemm& g, const ConvShape& s, const Env& env) {
  const double row = static_cast<double>(g.row * g.parts * s.stride[0]);
  const int64_t room = static_cast<int64_t>(0.3 * static_cast<double>(env.l2_bytes) / row);
  const int64_t mine = (s.out.h + env.threads - 1) / env.threads;
  const int64_t passes = room < 1 ? mine : (mine + room - 1) / room;
  return (mine + passes - 1) / passes;
}

AmxGemm chunk_of(const AmxGemm& g, int64_t image, int64_t begin, int64_t rows) {
  AmxGemm c = g;
  c.source.images = 1;
  c.source.origin += image * g.source.image;
  c.source_top -= begin * g.planes;
  c.out.origin += image * g.out.image + begin * g.out.row;
  c.residual.origin += image * g.residual.image + begin * g.residual.row;
  set_rows(rows, &c);
  c.grid = {1, 1};
  return c;
}

AmxGemm rows_of(const AmxGemm& g, int64_t begin, int64_t rows) {
  AmxGemm c = g;
  c.source.origin += begin * g.source.row;
  c.out.origin += begin * g.out.row;
  c.residual.origin += begin * g.residual.row;
  c.total = rows * g.slots;
  c.blocks = static_cast<int32_t>((c.total + kAmxBlock - 1) / kAmxBlock);
  c.grid = {1, 1};
  return c;
}

size_t operand_bytes(const AmxGemm& g) {
  const int64_t images = g.chunk_rows ? 1 : g.source.images;
  return static_cast<size_t>(g.parts) *
         static_cast<size_t>(round_up(images * g.image + kAmxBlock * g.lda + g.row, 64) + 64);
}

bool finish_plan(const ConvShape& s, int element_bytes, Step& step, Env& env, AmxGemm* g) {
  const int64_t kw = s.kernel[1], steps = int64_t{g->taps} * g->k_tiles;
  int64_t* offsets = static_cast<int64_t*>(env.allocate((steps + 1) * sizeof(int64_t)));
  if (!offsets) return env.out_of_memory();
  for (int64_t i = 0; i < steps; ++i) {
    const int64_t tap = i % g->taps, k = i / g->taps;
    const int64_t ky = (g->joined ? tap : tap / kw) * s.dilation[0];
    const int64_t kx = (g->joined ? 0 : tap % kw) * s.dilation[1];
    offsets[i] = ky % g->planes * g->plane + ky / g->planes * g->row + kx * g->pixel + k * g->k_bytes;
  }
  g->offsets = offsets;
  if (g->copied) {
    size_t bytes;
    if (!mul_size(static_cast<size_t>(g->source.images), static_cast<size_t>(g->image), &bytes) ||
        bytes > (size_t{1} << 40)) {
      return env.fail("input too large");
    }
    // The last block reads whole tiles; what lies there belongs to no output.
    const size_t operand = operand_bytes(*g);
    g->part_bytes = static_cast<int64_t>(operand / static_cast<size_t>(g->parts));
    if (g->chunk_rows) {
      if (operand > step.scratch_bytes) step.scratch_bytes = operand;
    } else {
      g->copy_at = (step.shared_bytes + 63) / 64 * 64;
      step.shared_bytes = g->copy_at + operand;
      step.phases = 2;
    }
  }
  // Bytes added to few weights: all panels of a few blocks follow each other, so that whole lines of
  // the residual are read and of the output written at once.
  // Else weights of a panel stay in the first-level cache, or the pixels of a few blocks do; weights that
  // the second-level cache does not hold beside the pixels are read once.
  const double weights = static_cast<double>(g->groups * g->group_weight_bytes);
  const double block = g->parts * static_cast<double>(g->copied ? g->image : g->total * g->lda) /
                           (g->blocks ? g->blocks : 1) + 1;
  const double l1 = static_cast<double>(env.l1_bytes), l2 = static_cast<double>(env.l2_bytes);
  const bool floats = element_bytes == 2;
  const bool small_panel = !floats && static_cast<double>(g->panel_bytes) <= 0.5 * l1;
  const bool streamed = weights > (floats ? 0.3 : 0.6) * l2;
  const double room = small_panel || streamed ? 0.4 * l2 : 0.5 * l1;
  const bool whole_lines = !floats && s.has_residual && g->taps == 1 && weights <= 0.05 * l2;
  const double fit = whole_lines ? 2 : room / block;
  g->group_blocks = fit < 1 ? 1 : fit > 1e6 ? 1000000 : static_cast<int32_t>(fit);
  const double tile_cost = 4 * (step_cost(*g) * static_cast<double>(steps) + 80);
  g->grid = choose_grid(env.threads, g->source.images * g->blocks, g->groups * g->panels, tile_cost,
                        static_cast<double>(g->source.images * g->total * g->lda) / 16,
                        weights / 16);
  return true;
}

void set_tiles(const AmxGemm& g) {
  TileConfig c{};
  c.palette = 1;
  for (int i = 0; i < 4; ++i) c.rows[i] = kAmxRows, c.row_bytes[i] = 64;          // sums
  for (int i = 4; i < 6; ++i) c.rows[i] = kAmxRows, c.row_bytes[i] = static_cast<uint16_t>(g.k_bytes);
  for (int i = 6; i < 8; ++i) c.rows[i] = static_cast<uint8_t>(g.k_bytes / 4), c.row_bytes[i] = 64;
  // NOTE: gcc 12's intrinsic claims to read the first 8 bytes only.
  __asm__ volatile("ldtilecfg %0" ::"m"(c));
}

void release_tiles() { _tile_release(); }

}  // namespace lite::LITE_ISA
