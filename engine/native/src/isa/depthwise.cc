// Depthwise convolution, one filter per channel, channels-last.
//
// A tile is a few neighbouring output pixels of one row; its input columns are given by pointers
// (a column of padding points at zeros, rows of padding are left out), and the channels are the
// innermost loop, so that pixels a power of two apart do not fight for cache sets. Each input
// column is loaded once per row and serves every output it belongs to, in pairs of output rows those of both.
#include "depthwise_scale.h"
#include "depthwise_tiles.h"

namespace lite::LITE_ISA {
namespace {

// Pixels of a tile in a row of `width`: tiles near the end step back and compute some pixels twice
// rather than becoming narrow. The more taps a row has, the more those count against the loads that
// wider tiles share.
int tile_pixels(int64_t width, int64_t taps) {
  if (width < 7) return width >= 4 ? 4 : width >= 2 ? 2 : 1;
  const int64_t wide = rounded_up(width, 7), narrow = rounded_up(width, 4);
  return taps > 3 ? (narrow * 8 <= wide * 7 ? 4 : 7) : (narrow * 4 <= wide * 3 ? 4 : 7);
}

// The pieces of a row of k taps, ended by 0; false for widths that have none: 1, 2 and 4.
bool in_pieces_of(int64_t k, uint8_t* pieces) {
  const auto can_be = [](int64_t rest) { return rest == 0 || rest == 3 || rest > 4; };
  while (k > 0) {
    *pieces = 0;
    for (int width : kPiece)
      if (!*pieces && k >= width && can_be(k - width)) *pieces = static_cast<uint8_t>(width);
    if (!*pieces) return false;
    k -= *pieces++;
  }
  *pieces = 0;
  return true;
}

// Input columns of a tile.
int64_t columns_of(const Depthwise& d) {
  return (d.pixels - 1) * d.shape.stride[1] + d.shape.kernel[1];
}

// Wide tiles of few registers take half of a line of every pixel, one half behind the other. Pixels that share few
// sets of x86's first-level cache, of eight ways and 4 KiB, evict each other in between. Of more taps the products take
// longer than the second-level cache.
bool half_lines_collide(const ConvShape& s, int64_t columns) {
  constexpr int64_t kLine = 64, kWay = 4096, kWays = 8;
  const int64_t apart = s.dilation[1] * s.in.pixel * static_cast<int64_t>(sizeof(Real));
  int64_t step = kWay;  // between the sets that pixels fall into
  while (apart % step != 0 && step > kLine) step /= 2;
  const int64_t lines = columns * s.kernel[0] + kPixels;
  const bool few_taps = s.kernel[0] * s.kernel[1] <= 25;
  return kVectorRegisters < 32 && few_taps && lines > 2 * kWays * (kWay / step);
}

bool prepare(Step& step, Env& env) {
  Depthwise* d = static_cast<Depthwise*>(env.allocate(sizeof(Depthwise)));
  if (!d) return env.out_of_memory();
  step.state = d;
  ConvShape& s = d->shape;
  if (!read_conv(step, env, false, &s, kReal)) return false;
  if (s.group_in != 1 || s.group_out != 1)
    return env.fail("takes one input and one output channel per group");
  const int64_t taps = s.kernel[0] * s.kernel[1];
  if (taps > kMaxTaps) return env.fail("kernel has more than %d taps", kMaxTaps);
  const int64_t k = s.kernel[1];
  d->stride = static_cast<int32_t>(s.stride[1]);
  const int64_t channels = s.out.c;
  const int64_t apart = s.dilation[1], width = s.out.w / apart;
  d->general = (apart > 1 && d->stride > 1) || d->stride > 2 || width < 4 ||
               !in_pieces_of(k, d->pieces) || (kStepsBack && channels < kLanes);
  const bool twice = d->stride == 2;
  if (d->general) taps == 1 ? set_tiles<1, 0>(d) : set_tiles<0, 0>(d);
  else if (k == 3) twice ? set_tiles<3, 2>(d) : set_tiles<3, 1>(d);
  else if (k == 5) twice ? set_tiles<5, 2>(d) : set_tiles<5, 1>(d);
  else twice ? set_tiles<0, 2>(d) : set_tiles<0, 1>(d);
  d->pixels = d->general ? tile_pixels(s.out.w, 1) : tile_pixels(width, k);
  if (!d->general && width >= 4 && half_lines_collide(s, columns_of(*d))) d->pixels = 4;
  d->block = vectors_of(d->pixels) * kLanes;
#if defined(LITE_DEPTHWISE_SCALE)
  if (taps == 1 && width >= 7) {    // no tile is cheaper for a pixel than the other
    const bool four = rounded_up(s.out.w, 4) < rounded_up(s.out.w, 7);
    d->pixels = four ? 4 : 7;
    d->tile[d->pixels - 1] = four ? scale_tile<4> : scale_tile<7>;
  }
#endif

  // Of the columns that a tile sees, k / 2 on either side may lie outside.
  if (!d->general && s.kernel[0] == k && s.stride[0] == d->stride && s.dilation[0] == 1 &&
      apart == 1 && s.in.pixel == s.out.pixel && !s.has_residual && channels >= kLanes &&
      s.out.w >= kPixels && s.pad[1] <= k / 2 && (s.out.w - 1) * d->stride - s.pad[1] + k / 2 < s.in.w) {
    if (k == 3) twice ? set_pair<3, 2>(s.out.w, d) : set_pair<3, 1>(s.out.w, d);
    else if (k == 5) twice ? set_pair<5, 2>(s.out.w, d) : set_pair<5, 1>(s.out.w, d);
    else if (k == 7 && !twice) set_pair<7, 1>(s.out.w, d);
  }

  const bool steps_back = (kStepsBack || d->pair) && channels % kLanes != 0;
  d->blocks = (channels + d->block - 1) / d->block;
  d->block_weights = taps * d->block;
  const auto reals = [&](int64_t n) {
    return static_cast<Real*>(env.allocate((n + 1) * sizeof(Real)));
  };
  Real* w = reals((d->blocks + steps_back) * d->block_weights);
  Real* b = reals(d->blocks * d->block);
  Real* zeros = reals(d->blocks * d->block);
  if (!w || !b || !zeros) return env.out_of_memory();
  const float* source = s.weights->as<float>();
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t i = 0; i < taps; ++i)
      w[c / d->block * d->block_weights + i * d->block + c % d->block] =
          static_cast<Real>(source[c * taps + i]);
    if (s.bias) b[c] = static_cast<Real>(s.bias->as<float>()[c]);
  }
  d->weights = w;
  if (steps_back && !d->general) {
    w += d->blocks * d->block_weights;
    d->last_weights = w;
    for (int64_t i = 0; i < taps; ++i)
      for (int64_t c = 0; c < kLanes; ++c)
        w[i * d->block + c] = static_cast<Real>(source[(channels - kLanes + c) * taps + i]);
    // One thread computes what shares a vector.
    if (d->blocks > 1 && channels % d->block < kLanes) --d->blocks;
  }
  d->bias = b;
  d->zeros = zeros;
  const bool clip = s.activation.act == Act::kClip;
  d->lo = clip ? s.activation.a : -INFINITY;
  d->hi = clip ? s.activation.b : INFINITY;
  const int64_t rows = s.out.images * s.out.h;
  // Measured on x86: few channels per pixel and an output that takes most of the cache, which its
  // input fills, wait for its lines.
#if !defined(__aarch64__)
  d->fetch_output = static_cast<size_t>(rows * s.out.row) * sizeof(float) > env.l2_bytes / 2 &&
                    s.out.c <= 4 * d->block;
#endif
  if (step.by_rows && s.out.images == 1) step.rows = row_map(s, d->pair ? 2 : 1);
  d->grid = choose_grid(env.threads, rows, d->blocks, static_cast<double>(s.out.w * taps), 0, 0);
  step.scratch_bytes = sizeof(Real*) * (d->general ? taps * kPixels : s.kernel[0] * columns_of(*d));
  if (d->general) {
    set_variant(step, "%s__" LITE_ISA_NAME "_any_%dx%d", step.kernel->name, d->pixels, static_cast<int>(d->block));
  } else {
    set_variant(step, "%s__" LITE_ISA_NAME "_%dx%ds%d_%dx%d", step.kernel->name,
                static_cast<int>(s.kernel[0]), static_cast<int>(k), d->stride, d->pixels, static_cast<int>(d->block));
  }
  return true;
}

struct RowAt {
  const Real* input;      // row 0 of the image
  int64_t y;              // output row
};

// Forms with columns: those of the tile at x, for every row of taps that is inside.
void point_columns(const Depthwise& d, RowAt at, int64_t x, int64_t ky0, int64_t ky1,
                   const Real** pointers) {
  const ConvShape& s = d.shape;
  const int64_t columns = columns_of(d), apart = s.dilation[1];
  const int64_t first = x * s.stride[1] - s.pad[1], behind = first + columns * apart;
  const int64_t low = -s.in.halo[1], high = s.in.w + s.in.halo[3];
  const int64_t row0 = at.y * s.stride[0] - s.pad[0];
  for (int64_t ky = ky0; ky < ky1; ++ky) {
    const Real* row = at.input + (row0 + ky * s.dilation[0]) * s.in.row;
    if (first >= low && behind - apart < high) {
      for (int64_t j = 0; j < columns; ++j) *pointers++ = row + (first + j * apart) * s.in.pixel;
    } else {
      for (int64_t j = first; j < behind; j += apart)
        *pointers++ = j >= low && j < high ? row + j * s.in.pixel : d.zeros;
    }
  }
}

// Two rows: input rows that they see, from column 0 on; nullptr for those outside.
void find_rows(const Depthwise& d, RowAt at, const Real** rows) {
  const ConvShape& s = d.shape;
  for (int i = 0; i < d.stride + s.kernel[0]; ++i) {
    const int64_t y = at.y * d.stride - s.pad[0] + i;
    const bool inside = y >= -s.in.halo[0] && y < s.in.h + s.in.halo[2];
    rows[i] = inside ? at.input + y * s.in.row : nullptr;
  }
}

// What TileArgs has of the tile at x in them.
LITE_INLINE void point_rows(const Depthwise& d, const Real* const* rows, int64_t x, TileArgs* t) {
  const ConvShape& s = d.shape;
  const int64_t k = s.kernel[1], first = x * d.stride - s.pad[1], columns = (d.pair_pixels - 1) * d.stride + k;
  const int64_t outside_left = -s.in.halo[1] - first, inside = s.in.w + s.in.halo[3] - first;
  t->columns_inside = (1u << (inside < columns ? inside : columns)) - 1;
  if (outside_left > 0) t->columns_inside &= ~0u << outside_left;
  for (int i = 0; i < d.stride + k; ++i)
    t->rows[i] = rows[i] ? rows[i] + (first + k / 2) * s.in.pixel : nullptr;
}

// General form: the input pixel of every tap and output; outside ones point at zeros.
void point_taps(const Depthwise& d, RowAt at, int64_t x, int pixels, const Real** pointers) {
  const ConvShape& s = d.shape;
  for (int64_t ky = 0; ky < s.kernel[0]; ++ky) {
    const int64_t iy = at.y * s.stride[0] - s.pad[0] + ky * s.dilation[0];
    const bool in_rows = iy >= -s.in.halo[0] && iy < s.in.h + s.in.halo[2];
    for (int64_t kx = 0; kx < s.kernel[1]; ++kx)
      for (int p = 0; p < pixels; ++p) {
        const int64_t ix = (x + p) * s.stride[1] - s.pad[1] + kx * s.dilation[1];
        const bool inside = in_rows && ix >= -s.in.halo[1] && ix < s.in.w + s.in.halo[3];
        *pointers++ = inside ? at.input + iy * s.in.row + ix * s.in.pixel : d.zeros;
      }
  }
}

// Rows of all images and blocks of channels.
void run_part(const Step& step, const Real* input, Real* output, const GridPart& part,
              bool fetch_output, void* scratch) {
  const Depthwise& d = *static_cast<const Depthwise*>(step.state);
  const ConvShape& s = d.shape;
  const auto [row_begin, row_end, block_begin, block_end] = part;
  const Real* residual = s.has_residual ? step.inputs[3]->as<Real>() : nullptr;
  const Real** pointers = static_cast<const Real**>(scratch);
  const Act act = s.activation.act;
  const bool apply = act != Act::kNone && act != Act::kClip && act != Act::kHardSwish;
  TileArgs t{};
  t.block_weights = d.block_weights;
  t.bias = d.bias;
  t.begin = block_begin * d.block;
  t.end = block_end < d.blocks ? block_end * d.block : s.out.c;
  // Outputs of a tile lie as far apart as the taps.
  const int64_t apart = d.general ? 1 : s.dilation[1];
  t.out_pixel = apart * s.out.pixel;
  t.residual_pixel = apart * s.residual.pixel;
  t.out_row = s.out.row;
  t.lo = d.lo;
  t.hi = d.hi;
  t.hard_swish = act == Act::kHardSwish;
  t.pointers = pointers;
  t.columns = static_cast<int32_t>(columns_of(d));
  t.pieces = d.pieces;
  const Real* weights = d.weights + block_begin * d.block_weights;
  for (int64_t row = row_begin, rows = 1; row < row_end; row += rows) {
    const int64_t image = row / s.out.h, y = row - image * s.out.h;
    const RowAt at{input + s.in.origin + image * s.in.image, y};
    const bool pair = d.pair && row + 1 < row_end && y + 1 < s.out.h;
    rows = pair ? 2 : 1;
    const int pixels = pair ? d.pair_pixels : d.pixels;
    int64_t ky0 = 0, ky1 = s.kernel[0];
    if (!d.general && !pair) {
      tap_window(y * s.stride[0] - s.pad[0], s.dilation[0], s.kernel[0], -s.in.halo[0],
                 s.in.h + s.in.halo[2], &ky0, &ky1);
    }
    t.taps = static_cast<int32_t>(d.general ? s.kernel[0] * s.kernel[1] : ky1 - ky0);
    t.weights = weights + ky0 * s.kernel[1] * d.block;
    t.last_weights = d.last_weights ? d.last_weights + ky0 * s.kernel[1] * d.block : nullptr;
    Real* out_row = output + s.out.origin + image * s.out.image + y * s.out.row;
    const Real* seen[kPairRows];
    if (pair) find_rows(d, at, seen);
    const auto compute = [&](int64_t x) __attribute__((always_inline)) {
      if (pair) point_rows(d, seen, x, &t);
      else if (d.general) point_taps(d, at, x, pixels, pointers);
      else point_columns(d, at, x, ky0, ky1, pointers);
      t.out = out_row + x * s.out.pixel;
      t.ahead = fetch_output ? t.out + s.out.row : nullptr;
      t.residual = residual ? residual + s.residual.origin + image * s.residual.image +
                                  y * s.residual.row + x * s.residual.pixel
                            : nullptr;
      (pair ? d.pair : d.tile[pixels - 1])(t);
      for (int64_t row = 0; apply && row < rows; ++row)
        activate_rows(t.out + row * s.out.row + t.begin, pixels, t.out_pixel, t.end - t.begin,
                      s.activation);
    };
    for (int64_t first = 0; first < apart; ++first) {
      const int64_t count = (s.out.w - first + apart - 1) / apart;
      for (int64_t i = 0; i < count; i += pixels) {
        if (i + pixels > count) i = count - pixels;
        compute(first + i * apart);
      }
    }
  }
}

void run(const Step& step, int, int thread, int, void* scratch) {
  const Depthwise& d = *static_cast<const Depthwise*>(step.state);
  const GridPart part = part_of(d.grid, d.shape.out.images * d.shape.out.h, 1, d.blocks, thread);
  run_part(step, step.inputs[0]->as<Real>(), step.outputs[0]->as<Real>(), part, d.fetch_output,
           scratch);
}

void run_rows(const Step& step, const RowRange& r, void* scratch) {
  const Depthwise& d = *static_cast<const Depthwise*>(step.state);
  run_part(step, reinterpret_cast<const Real*>(r.input), reinterpret_cast<Real*>(r.output),
           {r.begin, r.end, 0, d.blocks}, false, scratch);
}

const Kernel kDepthwise[] = {
#if defined(LITE_FP16)
    {"Conv", "f16_conv2d_depthwise", prepare, run, kAcceptsPitch | kAcceptsHalo | kDivisible, nullptr, run_rows},
#else
    {"Conv", "f32_conv2d_depthwise", prepare, run, kAcceptsPitch | kAcceptsHalo | kDivisible, nullptr, run_rows},
#endif
};

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(depthwise, kDepthwise)
