// QLinearConv with one filter per channel, channels-last bytes.
//
// Four neighbouring columns are interleaved so that each 32-bit lane holds four taps of one channel
// and one dot product adds all of them; packing to bytes undoes the interleaving. At stride 1 the
// same four columns serve two outputs. 3x3 tiles overlap their quads by two columns, whose half of
// the interleaving is shared. Columns and rows of padding point at the zero point, so that every
// output sees all taps and the zero point is one constant of the bias. Where the last channels fill half a
// wide register, two tiles share it. Without dot products of four a row of taps ends in a pair where it has
// at most two columns left.
#include "int8_depthwise_rows.h"

namespace lite::LITE_ISA {
namespace {

int32_t byte_of(int32_t v) { return v < -128 ? -128 : v > 127 ? 127 : v; }

// Bytes that the largest centred weight is a sum of.
int32_t parts_of(const IntDepthwise& d, const Tensor& w) {
  if (kPairs || !d.quant.w_zero) return 1;
  int32_t most = 1;
  const int64_t taps = d.shape.kernel[0] * d.shape.kernel[1];
  for (int64_t i = 0; i < d.shape.out.c * taps; ++i) {
    int32_t v = centred_weight(d.quant, w, i / taps, i), parts = 0;
    for (; v; v -= byte_of(v)) ++parts;
    if (parts > most) most = parts;
  }
  return most;
}

void pack(const IntDepthwise& d, const Tensor& w, const int32_t* bias, TapWeight* out,
          int32_t* biases, float* scales) {
  const ConvShape& s = d.shape;
  const int64_t kh = s.kernel[0], kw = s.kernel[1];
  const bool flipped = d.flip;
  // Stored byte (after the flip) minus `zero` is the centred number.
  const int32_t zero = d.quant.x_zero + (!flipped ? 0 : d.quant.x_signed ? 128 : -128);
  for (int64_t block = 0; block < d.blocks; ++block)
    for (int vector = 0; vector < 4; ++vector)
      for (int lane = 0; lane < kLanes; ++lane) {
        const bool twice = d.halved && block == d.blocks - 1;
        const int place = channel_of(vector, lane) % (twice ? kBlock / 2 : kBlock);
        const int64_t c = block * kBlock + place;
        if (c >= s.out.c) continue;
        const int64_t at = block * kBlock + vector * kLanes + lane;
        int32_t sum = 0, taps[3][3];
        for (int64_t ky = 0; ky < kh; ++ky)
          for (int64_t kx = 0; kx < kw; ++kx) {
            int32_t v = centred_weight(d.quant, w, c, (c * kh + ky) * kw + kx);
            sum += v;
            if (d.tile_rows) {
              taps[ky][kx] = v;
              continue;
            }
            for (int part = 0; part < d.parts; ++part) {
              const int32_t piece = kPairs ? v : byte_of(v);
              v -= piece;
              for (int o = 0; o < d.outputs; ++o) {
                const int64_t column = kx + o, q = column / 4;
                const bool in_half = d.half_quad && q == d.quads - 1;
                const int64_t tap = column % 4 * (in_half ? 2 : 1);
                const int64_t at = (ky * d.quads + q) * d.parts + part;
                TapWeight* quad = out + block * d.block_weights +
                                  (at * d.outputs + o) * kQuadWeights + vector * kBlock;
                quad[sizeof(TapWeight) == 1 ? lane * 4 + tap
                                            : tap % 2 * 2 * kLanes + lane * 2 + tap / 2] =
                    static_cast<TapWeight>(piece);
              }
            }
          }
        if (d.tile_rows)
          pack_rows(taps, out + block * d.block_weights + vector * kVectorWeights + lane * 4);
        biases[at] = (bias ? bias[c] : 0) - zero * sum;
        scales[at] = d.quant.scale[c];
      }
}

bool prepare(Step& step, Env& env) {
  IntDepthwise* d = static_cast<IntDepthwise*>(env.allocate(sizeof(IntDepthwise)));
  if (!d) return env.out_of_memory();
  step.state = d;
  ConvShape& s = d->shape;
  if (input_of(step, 9)) return env.fail("takes no residual");
  const Tensor* b = input_of(step, 8);
  const ConvOperands o{input_of(step, 0), input_of(step, 3), b, nullptr, output_of(step, 0)};
  if (!read_conv_shape(step, env, o, false, &s)) return false;
  if (s.group_in != 1 || s.group_out != 1)
    return env.fail("takes one input and one output channel per group");
  if (!read_quant_params(step, env, *o.x, *o.w, *o.y, b, "x", "w", s.out.c,
                         s.kernel[0] * s.kernel[1], &d->quant)) {
    return false;
  }
  const int32_t* bias = b ? b->as<int32_t>() : nullptr;
  d->blocks = (s.out.c + kBlock - 1) / kBlock;
  d->grid = choose_grid(env.threads, s.out.images * s.out.h, d->blocks,
                        static_cast<double>(s.out.w * s.kernel[0] * s.kernel[1]) * 3, 0, 0);
  if constexpr (kFloats) {
    d->floats = suits_floats(s, d->quant, *o.w, bias, env.l2_bytes);
    if (d->floats) return prepare_floats(step, env, s, d->quant, *o.w, bias, &d->form);
  }
  d->outputs = s.stride[1] == 1 && s.dilation[1] == 1 && s.out.w > 1 ? 2 : 1;
  d->paired = s.kernel[0] == 3 && s.kernel[1] == 3 && s.stride[1] <= 2 && s.dilation[1] == 1 &&
              s.out.w >= 2 * d->outputs;
  d->parts = parts_of(*d, *o.w);
  const bool neighbours = s.stride[0] == 1 && s.dilation[0] == 1;
  d->tile_rows = !kRowTiles || !d->paired || d->parts > 1 || s.out.w < kColumnsOut ? 0
                 : neighbours && d->outputs == 2                                   ? kRowsOut
                                                                                   : 1;
  d->tile_outputs = d->tile_rows ? kColumnsOut : d->paired ? 2 * d->outputs : d->outputs;
  d->quads = static_cast<int32_t>((s.kernel[1] + d->outputs - 1 + 3) / 4);
  const int64_t last = (s.kernel[1] + d->outputs - 1) % 4;
  d->half_quad = kPairs && !d->paired && (last == 1 || last == 2);
  d->columns = d->tile_rows ? columns_in(static_cast<int>(s.stride[1])) : d->paired ? 6 : 4 * d->quads;
  d->rows_of_taps = s.kernel[0] + (d->tile_rows == kRowsOut);
  d->halved = kHalves && s.out.c % kBlock == kBlock / 2 && s.out.w > d->tile_outputs;
  d->block_weights = d->tile_rows ? 4 * kVectorWeights
                                  : s.kernel[0] * d->quads * d->parts * d->outputs * kQuadWeights;
  d->flip = d->quant.x_signed == kFlipSigned;
  const int64_t channels = d->blocks * kBlock;
  TapWeight* w = static_cast<TapWeight*>(
      env.allocate(static_cast<size_t>(d->blocks * d->block_weights + 1) * sizeof(TapWeight)));
  int32_t* biases = static_cast<int32_t*>(env.allocate(static_cast<size_t>(channels + 1) * 4));
  float* scales = static_cast<float*>(env.allocate(static_cast<size_t>(channels + 1) * 4));
  uint8_t* padding = static_cast<uint8_t*>(env.allocate(static_cast<size_t>(channels + 1)));
  const int64_t pointers = d->rows_of_taps * d->columns;
  int64_t* offsets =
      static_cast<int64_t*>(env.allocate(static_cast<size_t>(pointers) * sizeof(int64_t)));
  if (!w || !biases || !scales || !padding || !offsets) return env.out_of_memory();
  for (int64_t i = 0; i < pointers; ++i)
    offsets[i] = i / d->columns * s.dilation[0] * s.in.row +
                 i % d->columns * s.dilation[1] * s.in.pixel;
  pack(*d, *o.w, bias, w, biases, scales);
  memset(padding, d->quant.x_zero & 0xff, static_cast<size_t>(channels));
  d->weights = w;
  d->bias = biases;
  d->scale = scales;
  d->padding = padding;
  d->offsets = offsets;
  step.scratch_bytes = static_cast<size_t>(2 * pointers) * sizeof(uint8_t*);
  set_variant(step, "%s__" LITE_ISA_NAME "_%dx%d", step.kernel->name,
              d->tile_outputs * (d->tile_rows ? d->tile_rows : 1), kBlock);
  return true;
}

// Columns of a tile's kernel rows; those outside point at the zero point.
void point(const IntDepthwise& d, const uint8_t* image, int64_t y, int64_t x,
           const uint8_t** pointers) {
  const ConvShape& s = d.shape;
  // Columns past the last tap meet zero weights: any readable pixel will do.
  const int64_t used = (d.tile_outputs - 1) * s.stride[1] + (s.kernel[1] - 1) * s.dilation[1] + 1;
  const int64_t first = x * s.stride[1] - s.pad[1], step = s.dilation[1];
  const bool all = first >= 0 && first + (d.columns - 1) * step < s.in.w;
  const int64_t top = y * s.stride[0] - s.pad[0];
  if (all && top >= 0 && top + (d.rows_of_taps - 1) * s.dilation[0] < s.in.h) {
    const uint8_t* from = image + top * s.in.row + first * s.in.pixel;
    for (int64_t i = 0; i < d.rows_of_taps * d.columns; ++i) pointers[i] = from + d.offsets[i];
    return;
  }
  for (int64_t ky = 0; ky < d.rows_of_taps; ++ky, pointers += d.columns) {
    const int64_t iy = top + ky * s.dilation[0];
    const bool in_rows = iy >= 0 && iy < s.in.h;
    for (int64_t j = 0; j < d.columns; ++j) {
      const int64_t ix = first + j * step;
      const bool inside = in_rows && j * step < used && ix >= 0 && ix < s.in.w;
      pointers[j] = inside ? image + iy * s.in.row + ix * s.in.pixel : d.padding;
    }
  }
}

void run(const Step& step, int, int thread, int, void* scratch) {
  const IntDepthwise& d = *static_cast<const IntDepthwise*>(step.state);
  const ConvShape& s = d.shape;
  const auto [row_begin, row_end, block_begin, block_end] =
      part_of(d.grid, s.out.images * s.out.h, d.tile_rows ? d.tile_rows : 1, d.blocks, thread);
  if constexpr (kFloats) {
    for (int64_t block = block_begin; d.floats && block < block_end; ++block)
      run_floats(step, s, d.quant, d.form, block * kBlock, row_begin, row_end,
                 static_cast<float*>(scratch));
    if (d.floats) return;
  }
  const uint8_t** pointers = static_cast<const uint8_t**>(scratch);
  static constexpr TileFn kTiles[2][2][2] = {
      {{tile<1, false, false>, tile<1, false, true>}, {tile<1, true, false>, tile<1, true, true>}},
      {{tile<2, false, false>, tile<2, false, true>}, {tile<2, true, false>, tile<2, true, true>}}};
  TileFn run_tile = kTiles[d.outputs - 1][d.paired][d.parts > 1];
  TileArgs t;
  t.pointers = pointers;
  const int64_t tiles = (s.out.w + d.tile_outputs - 1) / d.tile_outputs;
  const int64_t end = block_end * kBlock < s.out.c ? block_end * kBlock : s.out.c;
  const bool halved = d.halved && block_end == d.blocks;
  const int64_t halves_at = halved ? (d.blocks - 1) * kBlock : end;
  for (int64_t row = row_begin, rows = 1; row < row_end; row += rows) {
    const int64_t image = row / s.out.h, y = row - image * s.out.h;
    if (d.tile_rows) {
      rows = y + d.tile_rows <= s.out.h && row + d.tile_rows <= row_end ? d.tile_rows : 1;
      run_tile = row_tile(d, rows);
    }
    const uint8_t* in = step.inputs[0]->data + s.in.origin + image * s.in.image;
    uint8_t* out = step.outputs[0]->data + s.out.origin + image * s.out.image + y * s.out.row;
    // The last tile of a row overlaps the one before rather than being narrower.
    const auto enter = [&](int64_t tile, const uint8_t** to) {
      int64_t x = tile * d.tile_outputs;
      if (x + d.tile_outputs > s.out.w) x = s.out.w - d.tile_outputs;
      point(d, in, y, x, to);
      return out + x * s.out.pixel;
    };
    t.begin = block_begin * kBlock;
    t.end = halves_at;
    t.other = nullptr;
    for (int64_t i = 0; t.begin < t.end && i < tiles; ++i) {
      t.other_out = t.out = enter(i, pointers);
      run_tile(d, t);
    }
    t.begin = halves_at;
    t.end = end;
    t.other = pointers + d.rows_of_taps * d.columns;
    for (int64_t i = 0; halved && i < tiles; i += 2) {
      t.out = enter(i, pointers);
      t.other_out = enter(i + 1 < tiles ? i + 1 : i, pointers + d.rows_of_taps * d.columns);
      run_tile(d, t);
    }
  }
}

const Kernel kInt8Depthwise[] = {
    {"QLinearConv", "i8_conv2d_depthwise", prepare, run, kAcceptsPitch | kAcceptsHalo | kDivisible},
};

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(int8_depthwise, kInt8Depthwise)
