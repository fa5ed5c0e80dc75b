// QLinearConv with one filter per channel, channels-last bytes.
//
// Four neighbouring columns are interleaved so that each 32-bit lane holds four taps of one channel
// and one dot product adds all of them; packing to bytes undoes the interleaving. At stride 1 the
// same four columns serve two outputs. Columns and rows of padding point at the zero point, so that
// every output sees all taps and the zero point is one constant of the bias.
#include "int8_tile.h"
#include "conv_strips.h"
#include "quant_params.h"

namespace lite::LITE_ISA {
namespace {

constexpr int kBlock = 4 * kLanes;          // channels
// Weights of four taps for a block: bytes for dot products, else pairs of int16.
#if defined(__AVX512VNNI__) || defined(__ARM_FEATURE_DOTPROD)
constexpr int kQuadWeights = 4 * kBlock;
constexpr bool kFlipSigned = !kDotSigned;   // which inputs are flipped by 128
typedef int8_t TapWeight;
#else
constexpr int kQuadWeights = 4 * kBlock;
constexpr bool kFlipSigned = true;          // bytes are widened as unsigned numbers
typedef int16_t TapWeight;
#endif

struct IntDepthwise {
  ConvShape shape;
  QuantParams quant;
  int32_t outputs;            // per tile: 2 at stride 1, else 1
  int32_t quads;              // groups of four columns per kernel row
  int64_t blocks, block_weights, rows_of_taps;
  const TapWeight* weights;   // [block][ky][quad][output][vector][lane][tap]
  const int32_t* bias;        // in interleaved order
  const float* scale;
  const uint8_t* padding;     // the zero point, one pixel of it
  bool flip;
  ThreadGrid grid;
};

// Channel within a block of lane `lane` of vector `vector`, after interleave().
int channel_of(int vector, int lane) { return 16 * (lane / 4) + 4 * vector + lane % 4; }

LITE_INLINE I load_lanes(const void* p) {
  I v;
  memcpy(&v, p, sizeof v);
  return v;
}

// acc += the four products of every lane. `w` is vector `i` of a quad's weights.
LITE_INLINE I dot_four(I acc, I x, const TapWeight* w) {
#if defined(__AVX512VNNI__)
  const I b = load_lanes(w);
  asm("vpdpbusd %2, %1, %0" : "+v"(acc) : "v"(x), "v"(b));
  return acc;
#elif defined(__ARM_FEATURE_DOTPROD)
  return (I)vdotq_s32((int32x4_t)acc, (int8x16_t)x, (int8x16_t)load_lanes(w));
#else
  // Taps 0 and 2 of every lane, then 1 and 3, as int16 pairs.
  typedef uint32_t U __attribute__((vector_size(4 * kLanes)));
  const I even = x & 0x00ff00ff, odd = (I)((U)x >> 8) & 0x00ff00ff;
  const I we = load_lanes(w), wo = load_lanes(w + 2 * kLanes);
#if defined(__AVX512F__)
  return acc + (I)_mm512_madd_epi16((__m512i)even, (__m512i)we) +
         (I)_mm512_madd_epi16((__m512i)odd, (__m512i)wo);
#elif defined(__AVX2__)
  return acc + (I)_mm256_madd_epi16((__m256i)even, (__m256i)we) +
         (I)_mm256_madd_epi16((__m256i)odd, (__m256i)wo);
#elif defined(__SSE2__)
  return acc + (I)_mm_madd_epi16((__m128i)even, (__m128i)we) +
         (I)_mm_madd_epi16((__m128i)odd, (__m128i)wo);
#else
  const int16x8_t e = (int16x8_t)even, o = (int16x8_t)odd, f = (int16x8_t)we, g = (int16x8_t)wo;
  const int32x4_t low = vmlal_s16(vmull_s16(vget_low_s16(e), vget_low_s16(f)), vget_low_s16(o),
                                  vget_low_s16(g));
  const int32x4_t high = vmlal_high_s16(vmull_high_s16(e, f), o, g);
  return acc + (I)vpaddq_s32(low, high);
#endif
#endif
}

struct TileArgs {
  const uint8_t* const* pointers;   // [ky][quad][4]
  uint8_t* out;
  int64_t begin, end;               // channels
};

template <int kOutputs, bool kPart>
LITE_INLINE void block(const IntDepthwise& d, const TileArgs& t, int64_t c, int part) {
  const TapWeight* w = d.weights + c / kBlock * d.block_weights;
  I acc[kOutputs][4];
  LITE_UNROLL for (int i = 0; i < 4; ++i) {
    const I b = load(d.bias + c + i * kLanes);
    LITE_UNROLL for (int o = 0; o < kOutputs; ++o) acc[o][i] = b;
  }
  const B flip = splat_byte(d.flip ? 0x80 : 0);
  const uint8_t* const* p = t.pointers;
  for (int64_t q = d.rows_of_taps * d.quads; q > 0; --q, p += 4, w += kOutputs * kQuadWeights) {
    B x[4];
    LITE_UNROLL for (int j = 0; j < 4; ++j)
      x[j] = (kPart ? load_bytes(p[j] + c, part) : load_bytes(p[j] + c)) ^ flip;
    I quad[4];
    interleave(x[0], x[1], x[2], x[3], quad);
    LITE_UNROLL for (int o = 0; o < kOutputs; ++o)
      LITE_UNROLL for (int i = 0; i < 4; ++i)
        acc[o][i] = dot_four(acc[o][i], quad[i], w + o * kQuadWeights + i * kBlock);
  }
  const uint8_t y_flip = d.quant.y_signed ? 0x80 : 0;
  const B low = splat_byte(static_cast<uint8_t>(d.quant.low + y_flip));
  const B high = splat_byte(static_cast<uint8_t>(d.quant.high + y_flip));
  const int32_t zero = d.quant.y_zero + y_flip;
  LITE_UNROLL for (int o = 0; o < kOutputs; ++o) {
    LITE_UNROLL for (int i = 0; i < 4; ++i)
      acc[o][i] = rescale(acc[o][i], load(d.scale + c + i * kLanes));
    const B bytes = narrow_lanes(acc[o][0], acc[o][1], acc[o][2], acc[o][3], zero);
    const B y = min(high, max(low, bytes)) ^ splat_byte(y_flip);
    uint8_t* to = t.out + o * d.shape.out.pixel + c;
    if (kPart) store_bytes(to, y, part);
    else store_bytes(to, y);
  }
}

template <int kOutputs>
void tile(const IntDepthwise& d, const TileArgs& t) {
  int64_t c = t.begin;
  for (; c + kBlock <= t.end; c += kBlock) block<kOutputs, false>(d, t, c, 0);
  if (c < t.end) block<kOutputs, true>(d, t, c, static_cast<int>(t.end - c));
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
        const int64_t c = block * kBlock + channel_of(vector, lane);
        if (c >= s.out.c) continue;
        int32_t sum = 0;
        for (int64_t ky = 0; ky < kh; ++ky)
          for (int64_t kx = 0; kx < kw; ++kx) {
            const int32_t v = signed_weight(w, d.quant.w_unsigned, (c * kh + ky) * kw + kx);
            sum += v;
            for (int o = 0; o < d.outputs; ++o) {
              const int64_t column = kx + o, tap = column % 4;
              TapWeight* quad = out + block * d.block_weights +
                                ((ky * d.quads + column / 4) * d.outputs + o) * kQuadWeights +
                                vector * kBlock;
              if (sizeof(TapWeight) == 1) quad[lane * 4 + tap] = static_cast<TapWeight>(v);
              else quad[tap % 2 * 2 * kLanes + lane * 2 + tap / 2] = static_cast<TapWeight>(v);
            }
          }
        const int64_t at = block * kBlock + vector * kLanes + lane;
        biases[at] = (bias ? bias[c] : 0) - zero * sum;
        scales[at] = d.quant.scale[c];
      }
}

bool prepare(Step& step, Env& env) {
  IntDepthwise* d = static_cast<IntDepthwise*>(env.allocate(sizeof(IntDepthwise)));
  if (!d) return env.out_of_memory();
  step.state = d;
  ConvShape& s = d->shape;
  const Tensor* b = input_of(step, 8);
  const ConvOperands o{input_of(step, 0), input_of(step, 3), b, nullptr, output_of(step, 0)};
  if (!read_conv_shape(step, env, o, false, &s)) return false;
  if (s.group_in != 1 || s.group_out != 1)
    return env.fail("takes one input and one output channel per group");
  if (b && b->dtype != DType::kI32) return env.fail("bias must be i32");
  if (!read_quant_params(step, env, *o.x, *o.w, *o.y, "x", "w", s.out.c, &d->quant)) return false;
  d->outputs = s.stride[1] == 1 && s.dilation[1] == 1 && s.out.w > 1 ? 2 : 1;
  d->quads = static_cast<int32_t>((s.kernel[1] + d->outputs - 1 + 3) / 4);
  d->rows_of_taps = s.kernel[0];
  d->blocks = (s.out.c + kBlock - 1) / kBlock;
  d->block_weights = s.kernel[0] * d->quads * d->outputs * kQuadWeights;
  d->flip = d->quant.x_signed == kFlipSigned;
  const int64_t channels = d->blocks * kBlock;
  TapWeight* w = static_cast<TapWeight*>(
      env.allocate(static_cast<size_t>(d->blocks * d->block_weights + 1) * sizeof(TapWeight)));
  int32_t* biases = static_cast<int32_t*>(env.allocate(static_cast<size_t>(channels + 1) * 4));
  float* scales = static_cast<float*>(env.allocate(static_cast<size_t>(channels + 1) * 4));
  uint8_t* padding = static_cast<uint8_t*>(env.allocate(static_cast<size_t>(channels + 1)));
  if (!w || !biases || !scales || !padding) return env.out_of_memory();
  pack(*d, *o.w, b ? b->as<int32_t>() : nullptr, w, biases, scales);
  memset(padding, d->quant.x_zero & 0xff, static_cast<size_t>(channels));
  d->weights = w;
  d->bias = biases;
  d->scale = scales;
  d->padding = padding;
  step.scratch_bytes = static_cast<size_t>(d->rows_of_taps * d->quads * 4) * sizeof(uint8_t*);
  const double taps = static_cast<double>(d->rows_of_taps * d->quads);
  d->grid = choose_grid(env.threads, s.out.images * s.out.h, d->blocks,
                        static_cast<double>(s.out.w) * taps * 8, 0, 0);
  set_variant(step, "%s__" LITE_ISA_NAME "_%dx%d", step.kernel->name, d->outputs, kBlock);
  return true;
}

// Columns of a tile's kernel rows; those outside point at the zero point.
void point(const IntDepthwise& d, const uint8_t* image, int64_t y, int64_t x,
           const uint8_t** pointers) {
  const ConvShape& s = d.shape;
  const int64_t columns = s.kernel[1] + d.outputs - 1;
  for (int64_t ky = 0; ky < s.kernel[0]; ++ky) {
    const int64_t iy = y * s.stride[0] - s.pad[0] + ky * s.dilation[0];
    const bool in_rows = iy >= 0 && iy < s.in.h;
    const uint8_t* row = in_rows ? image + iy * s.in.row : nullptr;
    for (int64_t j = 0; j < 4 * d.quads; ++j) {
      const int64_t ix = x * s.stride[1] - s.pad[1] + j * s.dilation[1];
      const bool inside = in_rows && j < columns && ix >= 0 && ix < s.in.w;
      *pointers++ = inside ? row + ix * s.in.pixel : d.padding;
    }
  }
}

void run(const Step& step, int, int thread, int, void* scratch) {
  const IntDepthwise& d = *static_cast<const IntDepthwise*>(step.state);
  const ConvShape& s = d.shape;
  if (thread >= d.grid.by_tiles * d.grid.by_panels) return;
  int64_t row_begin, row_end, block_begin, block_end;
  share(s.out.images * s.out.h, 1, thread / d.grid.by_panels, d.grid.by_tiles, &row_begin,
        &row_end);
  share(d.blocks, 1, thread % d.grid.by_panels, d.grid.by_panels, &block_begin, &block_end);
  const uint8_t** pointers = static_cast<const uint8_t**>(scratch);
  TileArgs t;
  t.pointers = pointers;
  t.begin = block_begin * kBlock;
  t.end = block_end * kBlock < s.out.c ? block_end * kBlock : s.out.c;
  for (int64_t row = row_begin; row < row_end; ++row) {
    const int64_t image = row / s.out.h, y = row - image * s.out.h;
    const uint8_t* in = step.inputs[0]->data + s.in.origin + image * s.in.image;
    uint8_t* out = step.outputs[0]->data + s.out.origin + image * s.out.image + y * s.out.row;
    for (int64_t x = 0; x < s.out.w;) {
      point(d, in, y, x, pointers);
      t.out = out + x * s.out.pixel;
      if (d.outputs == 1) {
        tile<1>(d, t);
        x += 1;
      } else {
        tile<2>(d, t);
        // The last pair of an odd row overlaps the one before.
        x += x + 3 == s.out.w ? 1 : 2;
      }
    }
  }
}

const Kernel kInt8Depthwise[] = {
    {"QLinearConv", "i8_conv2d_depthwise", prepare, run, kAcceptsPitch | kAcceptsHalo},
};

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(int8_depthwise, kInt8Depthwise)
