#include "int8_gemm.h"

#include "tap_gemm.h"
#include "tile_loop.h"

namespace lite::LITE_ISA {
namespace {

constexpr int64_t kNearBytes = 24576;    // half of a first-level cache

struct Packer {
  const ConvShape& s;
  const IntWeightView& v;
  int64_t join;
  const IntGemm& g;

  // Centred weight of packed group, output o, input c; 0 outside the block diagonal.
  int32_t at(int64_t group, int64_t o, int64_t c, int64_t ky, int64_t kx) const {
    // Divisions cost more than the rest.
    if (g.row_channels) kx = c / g.row_channels, c -= kx * g.row_channels;
    const int64_t member = join > 1 ? c / s.group_in : 0;
    if (join > 1 && o / s.group_out != member) return 0;
    return centred_weight(g.quant, *v.tensor, group * g.out_c + o,
                          v.origin + (group * join + member) * v.group +
                              (o - member * s.group_out) * v.out +
                              (c - member * s.group_in) * v.in + ky * v.y + kx * v.x);
  }

  void weights(IntWeight* out) const {
    for (int64_t group = 0; group < g.groups; ++group)
      for (int64_t p = 0; p < g.panels; ++p) {
        const int64_t columns = panel_columns(g.out_c, p), n0 = p * kTileColumns;
        IntWeight* w = out + group * g.group_weights + p * g.panel_weights;
        for (int64_t ky = 0; ky < s.kernel[0]; ++ky)
          for (int64_t kx = 0; kx < s.kernel[1]; ++kx)
            for (int64_t c = 0; c < g.depth_groups * kDepth; c += kDepth, w += columns * kDepth)
              for (int64_t n = 0; n < columns && n0 + n < g.out_c; ++n) {
                const int32_t zero = g.w_zero ? g.quant.w_zero[group * g.out_c + n0 + n] : 0;
                for (int64_t i = 0; i < kDepth && c + i < g.in_c; ++i)
                  w[n * kDepth + i] =
                      static_cast<IntWeight>(at(group, n0 + n, c + i, ky, kx) + zero);
              }
      }
  }

  // bias - zero * (sum of the weights whose taps are inside), one row per tap window.
  void biases(const int32_t* bias, int32_t zero, int32_t* out) const {
    for (int32_t i = 0; i < g.list.num_windows; ++i) {
      const TapWindow& t = g.list.windows[i];
      for (int64_t group = 0; group < g.groups; ++group, out += g.panels * kTileColumns)
        for (int64_t o = 0; o < g.out_c; ++o) {
          int64_t sum = 0;
          for (int64_t ky = t.ky0; zero && ky < t.ky1; ++ky)
            for (int64_t kx = t.kx0; kx < t.kx1; ++kx)
              for (int64_t c = 0; c < g.in_c; ++c) sum += at(group, o, c, ky, kx);
          // Sums of int32 wrap, here as in the dot products.
          out[o] = static_cast<int32_t>(
              static_cast<uint32_t>(bias ? bias[group * g.out_c + o] : 0) -
              static_cast<uint32_t>(zero * sum));
        }
    }
  }
};

// Dot products of bytes: whether all weights are bytes when their zero points are subtracted.
bool fit_centred(const ConvShape& s, const IntWeightView& v, const QuantParams& q) {
  for (int64_t o = 0; o < s.out.c; ++o) {
    const int64_t first = v.origin + o / s.group_out * v.group + o % s.group_out * v.out;
    for (int64_t c = 0; c < s.group_in; ++c)
      for (int64_t ky = 0; ky < s.kernel[0]; ++ky)
        for (int64_t kx = 0; kx < s.kernel[1]; ++kx) {
          const int32_t w =
              centred_weight(q, *v.tensor, o, first + c * v.in + ky * v.y + kx * v.x);
          if (w != static_cast<int8_t>(w)) return false;
        }
  }
  return true;
}

// The copy of the input, with a border.
PixelView copy_view(PixelView v, int64_t pixel, const int32_t (&border)[4]) {
  v.pixel = pixel;
  v.row = (v.w + border[1] + border[3]) * pixel;
  v.image = (v.h + border[0] + border[2]) * v.row;
  v.origin = border[0] * v.row + border[1] * pixel;
  for (int i = 0; i < 4; ++i) v.halo[i] = border[i];
  return v;
}

// Pixels that the taps reach beyond the input.
void read_border(const ConvShape& s, int32_t (&border)[4]) {
  for (int axis = 0; axis < 2; ++axis) {
    const int64_t in = axis ? s.in.w : s.in.h, out = axis ? s.out.w : s.out.h;
    const int64_t reach = (out - 1) * s.stride[axis] + (s.kernel[axis] - 1) * s.dilation[axis] + 1;
    const int64_t after = reach - s.pad[axis] - in;
    border[axis] = static_cast<int32_t>(s.pad[axis] > 0 ? s.pad[axis] : 0);
    border[axis + 2] = static_cast<int32_t>(after > 0 ? after : 0);
  }
}

// Image rows of half a tile's pixels: two of them, equally far from each other all over the list, make
// one tile, which reads the weights once.
bool fold_strips(StripList* list, Strip* fold) {
  if (!kFolds || list->count < 2) return false;
  const Strip &first = list->strips[0], &second = list->strips[1];
  *fold = Strip{};
  fold->a = second.a - first.a, fold->c = second.c - first.c, fold->r = second.r - first.r;
  for (int32_t i = 0; i < list->count; ++i)
    if (list->strips[i].pixels != kHalfRows) return false;
  int32_t count = 0;
  for (int32_t i = 0; i < list->count; ++count) {
    Strip s = list->strips[i++];
    if (i < list->count) {
      const Strip& next = list->strips[i];
      if (next.a - s.a == fold->a && next.c - s.c == fold->c && next.r - s.r == fold->r &&
          next.window == s.window && next.lda == s.lda && next.ldc == s.ldc && next.ldr == s.ldr) {
        s.pixels = s.base = kTileRows;
        ++i;
      }
    }
    s.first_tile = count;
    list->strips[count] = s;
  }
  list->count = list->tiles = count;
  return true;
}

// Channels that are no multiple of kDepth: a row of taps is one run of bytes, as 7 x 3 are 6 groups of
// four where single taps would be 7. Sums of rows cannot tell the run's end.
bool joins_rows(const ConvShape& s, bool summed) {
  return !summed && s.groups == 1 && s.kernel[1] > 1 && s.dilation[1] == 1 &&
         s.group_in % kDepth != 0;
}

}  // namespace

bool needs_row_sums(const IntShape& s, const QuantParams& quant) {
  return kBytes && quant.w_zero && !fit_centred(s.conv, s.w, quant);
}

bool prepare_int_gemm(ConvShape s, const IntWeightView& weights, const int32_t* bias,
                      const QuantParams& quant, bool summed, bool in_parts, Step& step, Env& env,
                      IntGemm* g, bool copies) {
  const int64_t join = summed ? 1 : groups_to_join(s, kLanes);
  const bool rows = !in_parts && joins_rows(s, summed);
  g->quant = quant;
  g->input = s.in;
  g->groups = s.groups / join;
  g->row_channels = rows ? s.group_in : 0;
  g->in_c = rows ? s.kernel[1] * s.group_in : s.group_in * join;
  g->out_c = s.group_out * join;
  g->kernel_w = rows ? 1 : s.kernel[1];
  g->panels = panel_count(g->out_c);
  g->depth_groups = (g->in_c + kDepth - 1) / kDepth;
  const int64_t depth = s.kernel[0] * g->kernel_w * g->depth_groups * kDepth;
  g->panel_weights = depth * kTileColumns;
  g->group_weights = g->panels ? (g->panels - 1) * g->panel_weights +
                                     depth * panel_columns(g->out_c, g->panels - 1)
                               : 0;
  g->copied = copies || !kBytes || rows || g->in_c % kDepth != 0;
  const int64_t padded = rows ? s.group_in : g->depth_groups * kDepth;
  int32_t border[4] = {};
  if (rows) {
    read_border(s, border);
    border[0] = border[2] = 0;
    s.kernel[1] = 1;
  } else if (!in_parts && s.kernel[0] * s.kernel[1] > 1) {
    // Without edges tiles are higher and fewer, and each reads a panel of weights: on 7x7 pixels 7
    // instead of 13.
    StripList edges, whole;
    ConvShape copy = s;
    read_border(s, border);
    copy.in = copy_view(s.in, g->groups * padded, border);
    if (!make_strips(s, kTileRows, env, &edges)) return false;
    if (!make_strips(copy, kTileRows, env, &whole)) return false;
    fold_strips(&whole, &g->fold);
    if (5 * whole.tiles <= 3 * edges.tiles) g->copied = true;
    else memset(border, 0, sizeof border);
  }
  if (g->copied) {
    // From here on the input is the copy.
    memcpy(g->border, border, sizeof border);
    s.in = copy_view(s.in, g->groups * padded, border);
    size_t pixels, bytes;
    if (!mul_size(static_cast<size_t>(s.in.images), static_cast<size_t>(s.in.image), &pixels) ||
        !mul_size(pixels, sizeof(Operand), &bytes)) {
      return env.fail("input too large");
    }
    step.shared_bytes = bytes + 64;
    step.phases = 2;
  }
  g->tap_x = s.dilation[1] * s.in.pixel * kOperandBytes;
  g->tap_y = s.dilation[0] * s.in.row * kOperandBytes;
  g->joined_taps = g->tap_x == g->depth_groups * kDepth * kOperandBytes;
  flatten_pointwise(&s);
  if (!make_strips(s, kTileRows, env, &g->list)) return false;
  g->folded = fold_strips(&g->list, &g->fold);

  const int64_t columns = g->groups * g->panels * kTileColumns;
  Recipe recipe = recipe_of(LITE_ISA_NAME " integers", s, weights, quant);
  int64_t* own = recipe.numbers + kViewNumbers;
  own[0] = join, own[1] = g->row_channels, own[2] = g->depth_groups, own[3] = g->in_c, own[4] = g->group_weights;
  const size_t packed_bytes = static_cast<size_t>(g->groups * g->group_weights + 64) * sizeof(IntWeight);
  bool made = false;
  IntWeight* packed = static_cast<IntWeight*>(quant.w_zero ? env.allocate(packed_bytes)
                                                           : env.allocate_packed(recipe, packed_bytes, &made));
  int32_t* biases = static_cast<int32_t*>(
      env.allocate(static_cast<size_t>(columns * g->list.num_windows + 1) * sizeof(int32_t)));
  float* scale = static_cast<float*>(env.allocate(static_cast<size_t>(columns + 1) * 4));
  int32_t* w_zero = nullptr;
  if (summed) {
    w_zero = static_cast<int32_t*>(env.allocate(static_cast<size_t>(columns + 1) * 4));
    if (!w_zero) return env.out_of_memory();
    for (int64_t i = 0; i < g->groups * g->out_c; ++i)
      w_zero[i / g->out_c * g->panels * kTileColumns + i % g->out_c] = quant.w_zero[i];
  }
  g->w_zero = w_zero;
  if (!packed || !biases || !scale) return env.out_of_memory();
  const Packer packer{s, weights, join, *g};
  if (!made) packer.weights(packed);
  if (kSaturates) {
    uint8_t* bounds = static_cast<uint8_t*>(
        env.allocate(static_cast<size_t>(g->groups * g->panels * bounds_bytes(depth) + 1)));
    if (!bounds) return env.out_of_memory();
    for (int64_t p = 0; p < g->groups * g->panels; ++p) {
      const int64_t group = p / g->panels, panel = p % g->panels;
      find_bounds(packed + group * g->group_weights + panel * g->panel_weights, depth,
                  static_cast<int>(panel_columns(g->out_c, panel) / kLanes), bounds + p * bounds_bytes(depth));
    }
    g->bounds = bounds;
  }
  // The byte as it is multiplied stands for value + offset: the zero point moves with it.
  const int32_t flipped = kDotSigned ? -128 : 128;
  const int32_t offset = kEitherSign || quant.x_signed == kDotSigned ? 0 : flipped;
  packer.biases(bias, kBytes ? quant.x_zero + offset : 0, biases);
  for (int64_t i = 0; i < g->groups * g->out_c; ++i)
    scale[i / g->out_c * g->panels * kTileColumns + i % g->out_c] = quant.scale[i];
  g->weights = packed;
  g->bias = biases;
  g->scale = scale;

  const double in_bytes = static_cast<double>(s.in.images) * s.in.h * s.in.row * kOperandBytes;
  const double pixels_out = static_cast<double>(s.out.images) * s.out.h * s.out.w;
  g->block_tiles = tiles_per_block(g->list, in_bytes, pixels_out * kTileColumns, env.l2_bytes);
  // All weights in the first-level cache: whole pixels of few tiles are written and their residual read.
  if (g->groups * g->group_weights * static_cast<int64_t>(sizeof(IntWeight)) <= kNearBytes &&
      g->block_tiles > 8) {
    g->block_tiles = 8;
  }
  const double tile_pixels = g->list.tiles ? pixels_out / g->list.tiles : 0;
  g->grid = choose_grid(env.threads, g->list.tiles, g->groups * g->panels,
                        tile_pixels * static_cast<double>(depth) / kDepth + 100, in_bytes / 16,
                        g->groups * g->group_weights * sizeof(IntWeight) / 16.0);
  return true;
}

OperandForm operand_form(const QuantParams& q) {
  if (kEitherSign) return {0, 0};
  if (kBytes) return {static_cast<uint8_t>(q.x_signed != kDotSigned ? 0x80 : 0), 0};
  return {static_cast<uint8_t>(q.x_signed ? 0x80 : 0), q.x_signed ? q.x_zero + 128 : q.x_zero};
}

void copy_operands(const PixelView& v, const uint8_t* x, OperandForm form, int64_t groups,
                   int64_t padded, const int32_t (&border)[4], Operand outside, Operand* out,
                   int thread, int threads) {
  const int64_t height = v.h + border[0] + border[2], width = v.w + border[1] + border[3];
  const int64_t pixel_elems = groups * padded, channels = v.c / groups;
  const bool dense = channels == padded && v.pixel == v.c;
  const auto fill = [&](Operand* to, int64_t pixels) {
    for (int64_t i = 0; i < pixels * groups; ++i, to += padded)
      for (int64_t c = 0; c < padded; ++c) to[c] = c < channels ? outside : Operand{0};
    return to;
  };
  int64_t begin, end;
  share(v.images * height, 1, thread, threads, &begin, &end);
  for (int64_t row = begin; row < end; ++row) {
    const int64_t y = row % height - border[0];
    Operand* to = out + row * width * pixel_elems;
    if (y < 0 || y >= v.h) {
      fill(to, width);
      continue;
    }
    to = fill(to, border[1]);
    const uint8_t* from = x + v.origin + row / height * v.image + y * v.row;
    if (dense) {
      const int64_t bytes = v.w * v.c;
      for (int64_t i = 0; i < bytes; ++i)
        to[i] = static_cast<Operand>((from[i] ^ form.flip) - form.shift);
      fill(to + bytes, border[3]);
      continue;
    }
    for (int64_t pixel = 0; pixel < v.w; ++pixel, from += v.pixel) {
      for (int64_t g = 0; g < groups; ++g, to += padded) {
        const uint8_t* source = from + g * channels;
        for (int64_t c = 0; c < channels; ++c)
          to[c] = static_cast<Operand>((source[c] ^ form.flip) - form.shift);
        for (int64_t c = channels; c < padded; ++c) to[c] = 0;
      }
    }
    fill(to, border[3]);
  }
}

void copy_int_input(const IntGemm& g, const Step& step, const Tensor& x, int thread, int threads) {
  const OperandForm form = operand_form(g.quant);
  const uint8_t zero = static_cast<uint8_t>(g.quant.x_zero) ^ form.flip;
  const int64_t padded = g.row_channels ? g.row_channels : g.depth_groups * kDepth;
  copy_operands(g.input, x.data, form, g.groups, padded, g.border,
                static_cast<Operand>(zero - form.shift), static_cast<Operand*>(step.shared), thread,
                threads);
}

void run_int_gemm(const IntGemm& g, const Step& step, const Tensor& x, const Tensor& y,
                  int thread, const RealSums* real) {
  const int64_t padded = g.depth_groups * kDepth;
  const uint8_t* input = g.copied ? static_cast<const uint8_t*>(step.shared) : x.data;
  // With kEitherSign copies keep their sign.
  const bool flip = (kEitherSign || !g.copied) && g.quant.x_signed != kDotSigned;
  const int64_t group_input = padded * kOperandBytes;
  const int64_t window_columns = g.groups * g.panels * kTileColumns;
  int64_t channel_out = 0, column = 0;
  const IntWeight* weights = nullptr;
  const uint8_t *bounds = nullptr, *group_start = input;
  int32_t row_sums[kTileRows];
  float row_scale[kTileRows];
  IntTile t;
  t.row_sums = row_sums;
  t.row_scale = row_scale;
  t.tap_x = g.tap_x;
  t.tap_y = g.tap_y;
  t.zero = g.quant.y_zero + (g.quant.y_signed ? 128 : 0);
  t.flip = g.quant.y_signed ? 0x80 : 0;
  t.low = static_cast<uint8_t>(g.quant.low + t.flip);
  t.high = static_cast<uint8_t>(g.quant.high + t.flip);
  const Residual& r = g.quant.residual;
  t.residual = nullptr;
  t.addend = addend_of(r);
  int64_t tap_weights = 0;
  const auto enter = [&](int64_t p) __attribute__((always_inline)) {
    const int64_t group = p / g.panels, panel = p - group * g.panels, n0 = panel * kTileColumns;
    weights = g.weights + group * g.group_weights + panel * g.panel_weights;
    group_start = input + group * group_input;
    channel_out = group * g.out_c + n0;
    column = p * kTileColumns;
    t.columns = static_cast<int32_t>(g.out_c - n0 < kTileColumns ? g.out_c - n0 : kTileColumns);
    tap_weights = padded * tile_vectors(t.columns) * kLanes;
    t.w_y = g.kernel_w * tap_weights;
    if (kSaturates) {
      bounds = bounds_of(g.bounds + p * bounds_bytes(g.panel_weights / kTileColumns));
      t.bounds_y = g.kernel_w * padded;
    }
    t.scale = g.scale + column;
    t.w_zero = g.w_zero ? g.w_zero + column : nullptr;
    if (real) {
      const int64_t fours = real->fours - channel_out;
      t.real_bias = real->bias + column;
      t.fours = !real->away ? -1 : static_cast<int32_t>(fours < 0 ? 0 : fours < t.columns ? fours : t.columns);
    }
  };
  const auto body = [&](const Strip& s, const TileRun& run) __attribute__((always_inline)) {
    const int32_t m0 = strip_begin(s, run.first), rows = s.base + (run.first < s.larger);
    const int32_t kernel_w = s.kx1 - s.kx0;
    t.lda = s.lda * kOperandBytes;
    t.a = group_start + s.a * kOperandBytes + m0 * t.lda;
    t.taps_y = s.ky1 - s.ky0;
    t.taps_x = g.joined_taps ? 1 : kernel_w;
    t.groups = g.depth_groups * (g.joined_taps ? kernel_w : 1);
    t.w = weights + (s.ky0 * g.kernel_w + s.kx0) * tap_weights;
    t.bounds = bounds ? bounds + (s.ky0 * g.kernel_w + s.kx0) * padded : nullptr;
    t.bias = g.bias + s.window * window_columns + column;
    t.c = y.data + s.c + m0 * s.ldc + channel_out;
    t.ldc = s.ldc;
    t.half_a = g.folded ? g.fold.a * kOperandBytes : kHalfRows * t.lda;
    t.half_c = g.folded ? g.fold.c : kHalfRows * t.ldc;
    t.half_r = g.folded ? g.fold.r : kHalfRows * s.ldr;
    if (r.input >= 0) t.residual = step.inputs[r.input]->data + s.r + m0 * s.ldr + channel_out;
    t.ldr = s.ldr;
    t.prefetch =
        run.prefetches ? weights + g.panel_weights + run.number * (g.panel_weights / kAheadTiles) : nullptr;
    t.prefetches = run.prefetches;
    t.count = run.count;
    if (real) {
      // Bias and zero points change places: the sums of weights times the rows' zero points leave.
      t.w_zero = t.bias, t.bias = real->none;
      t.real = reinterpret_cast<float*>(y.data) + s.c + m0 * s.ldc + channel_out;
      for (int32_t m = 0; m < rows; ++m) {
        const int64_t at = s.c + m0 * s.ldc + row_offset(m, t.ldc, t.half_c) - real->origin;
        row_scale[m] = real->x_scale[at / real->unit];
        row_sums[m] = real->x_zero[at / real->unit];
      }
    } else if (g.w_zero) {
      kRowSums[flip](t, rows, row_sums);
    }
    kIntTile[flip][tile_vectors(t.columns) - 1][rows - 1](t);
  };
  for_each_run<kAheadTiles>(g.list, part_of(g.grid, g.list.tiles, 1, g.groups * g.panels, thread),
                            g.block_tiles, real || g.w_zero ? 1 : g.block_tiles, enter, body);  // rows' own sums are of one tile
}

}  // namespace lite::LITE_ISA
