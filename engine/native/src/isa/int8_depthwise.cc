// QLinearConv with one filter per channel, channels-last bytes.
//
// Four neighbouring columns are interleaved so that each 32-bit lane holds four taps of one channel
// and one dot product adds all of them; packing to bytes undoes the interleaving. At stride 1 the
// same four columns serve two outputs. 3x3 tiles overlap their quads by two columns, whose half of
// the interleaving is shared. Columns and rows of padding point at the zero point, so that every
// output sees all taps and the zero point is one constant of the bias. Where the last channels fill half a
// wide register, two tiles share it. Without dot products of four a row of taps ends in a pair where it has
// at most two columns left.
#include "int8_depthwise_floats.h"
#include "ops/conv_strips.h"
#include "ops/quant_params.h"

namespace lite::LITE_ISA {
namespace {

constexpr int kBlock = 4 * kLanes;          // channels
#if defined(__AVX2__)
constexpr bool kHalves = true;
#else
constexpr bool kHalves = false;
#endif
// Weights of four taps for a block: bytes for dot products, else pairs of int16.
#if defined(LITE_VNNI) || defined(__ARM_FEATURE_DOTPROD)
constexpr int kQuadWeights = 4 * kBlock;
constexpr bool kFlipSigned = !kDotSigned;   // which inputs are flipped by 128
typedef int8_t TapWeight;
#else
constexpr int kQuadWeights = 4 * kBlock;
constexpr bool kFlipSigned = true;          // bytes are widened as unsigned numbers
typedef int16_t TapWeight;
#endif
constexpr bool kPairs = sizeof(TapWeight) == 2;
// Whether products of floats are the faster ones where they suit.
#if defined(__FMA__)
constexpr bool kFloats = kPairs;
#else
constexpr bool kFloats = false;
#endif

struct IntDepthwise {
  ConvShape shape;
  QuantParams quant;
  bool paired;                // 3x3 of stride 1 or 2: two quads that share two of six columns
  int32_t outputs;            // per quad of columns: 2 at stride 1, else 1
  int32_t tile_outputs;
  int32_t quads;              // per kernel row, without overlap
  bool half_quad;             // the last one of a row has two columns or one: pairs of int16
  int32_t columns;            // pointers per kernel row
  int32_t parts;              // bytes whose sum is a centred weight: 1, or up to 3
  int64_t blocks, block_weights, rows_of_taps;
  const TapWeight* weights;   // [block][ky][quad][part][output][vector][lane][tap]
  const int32_t* bias;        // in interleaved order
  const float* scale;
  const uint8_t* padding;     // the zero point, one pixel of it
  const int64_t* offsets;     // [ky][column], bytes from a tile's first pixel
  bool halved;                // the last block serves two tiles, its weights are there twice
  bool flip;
  bool floats;                // `form` in place of what is above from `paired` on
  FloatForm form;
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
#if defined(LITE_VNNI)
  dot_bytes(acc, x, load_lanes(w));
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

// acc += two products of every lane, of int16 pairs: a half quad. `w` as above.
LITE_INLINE I dot_two(I acc, I x, const TapWeight* w) {
#if defined(LITE_VNNI) || defined(__ARM_FEATURE_DOTPROD)
  return acc;  // has none
#elif defined(__AVX512F__)
  return acc + (I)_mm512_madd_epi16((__m512i)x, (__m512i)load_lanes(w));
#elif defined(__AVX2__)
  return acc + (I)_mm256_madd_epi16((__m256i)x, (__m256i)load_lanes(w));
#elif defined(__SSE2__)
  return acc + (I)_mm_madd_epi16((__m128i)x, (__m128i)load_lanes(w));
#else
  const int16x8_t v = (int16x8_t)x, f = (int16x8_t)load_lanes(w);
  return acc + (I)vpaddq_s32(vmull_s16(vget_low_s16(v), vget_low_s16(f)), vmull_high_s16(v, f));
#endif
}

struct TileArgs {
  const uint8_t* const* pointers;   // [ky][column]
  uint8_t* out;
  int64_t begin, end;               // channels
  const uint8_t* const* other;      // pointers and output of the tile that a halved block serves too
  uint8_t* other_out;
};

// What a register holds: channels of one pixel, the first ones of a block, or those of two pixels.
enum Fill { kWhole, kPart, kTwice };

template <Fill kFill>
LITE_INLINE B read(const TileArgs& t, int64_t column, int64_t c, int part, B flip) {
  const uint8_t* p = t.pointers[column] + c;
  if constexpr (kFill == kWhole) return load_bytes(p) ^ flip;
#if defined(__AVX512F__)
  if constexpr (kFill == kTwice) {
    const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    const __m256i* other = reinterpret_cast<const __m256i*>(t.other[column] + c);
    // The port of inserts is the one of all shuffles; a broadcast into one half needs none.
    return (B)_mm512_mask_broadcast_i64x4(_mm512_castsi256_si512(low), 0xf0,
                                          _mm256_loadu_si256(other)) ^ flip;
  }
#elif defined(__AVX2__)
  if constexpr (kFill == kTwice) {
    const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const __m128i other =
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(t.other[column] + c));
    return (B)_mm256_inserti128_si256(_mm256_castsi128_si256(low), other, 1) ^ flip;
  }
#endif
  return load_bytes(p, part) ^ flip;
}

template <Fill kFill>
LITE_INLINE void write(uint8_t* p, uint8_t* other, int part, B v) {
  if constexpr (kFill == kWhole) return store_bytes(p, v);
#if defined(__AVX512F__)
  if constexpr (kFill == kTwice) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_castsi512_si256((__m512i)v));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(other),
                        _mm512_extracti64x4_epi64((__m512i)v, 1));
    return;
  }
#elif defined(__AVX2__)
  if constexpr (kFill == kTwice) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128((__m256i)v));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(other), _mm256_extracti128_si256((__m256i)v, 1));
    return;
  }
#endif
  store_bytes(p, v, part);
}

template <int kOutputs>
LITE_INLINE void start(const IntDepthwise& d, int64_t c, I (&acc)[kOutputs][4]) {
  LITE_UNROLL for (int i = 0; i < 4; ++i) {
    const I b = load(d.bias + c + i * kLanes);
    LITE_UNROLL for (int o = 0; o < kOutputs; ++o) acc[o][i] = b;
  }
}

template <int kOutputs, Fill kFill>
LITE_INLINE void finish(const IntDepthwise& d, const TileArgs& t, int64_t c, int part,
                        I (&acc)[kOutputs][4]) {
  const uint8_t y_flip = d.quant.y_signed ? 0x80 : 0;
  const B low = splat_byte(static_cast<uint8_t>(d.quant.low + y_flip));
  const B high = splat_byte(static_cast<uint8_t>(d.quant.high + y_flip));
  const int32_t zero = d.quant.y_zero + y_flip;
  F scale[4];
  LITE_UNROLL for (int i = 0; i < 4; ++i) scale[i] = load(d.scale + c + i * kLanes);
  LITE_UNROLL for (int o = 0; o < kOutputs; ++o) {
    LITE_UNROLL for (int i = 0; i < 4; ++i) acc[o][i] = rescale(acc[o][i], scale[i]);
    const B bytes = narrow_lanes(acc[o][0], acc[o][1], acc[o][2], acc[o][3], zero);
    const B y = min(high, max(low, bytes)) ^ splat_byte(y_flip);
    const int64_t at = o * d.shape.out.pixel + c;
    write<kFill>(t.out + at, t.other_out + at, part, y);
  }
}

// Any kernel: quads of columns one after the other.
template <int kOutputs, bool kSplit, Fill kFill>
LITE_INLINE void block(const IntDepthwise& d, const TileArgs& t, int64_t c, int part) {
  const TapWeight* w = d.weights + c / kBlock * d.block_weights;
  I acc[kOutputs][4];
  start(d, c, acc);
  const B flip = splat_byte(d.flip ? 0x80 : 0);
  const int parts = kSplit ? d.parts : 1;
  int64_t column = 0;
  for (int64_t ky = 0; ky < d.rows_of_taps; ++ky) {
    for (int64_t q = d.half_quad; q < d.quads; ++q, column += 4) {
      B x[4];
      LITE_UNROLL for (int j = 0; j < 4; ++j) x[j] = read<kFill>(t, column + j, c, part, flip);
      I quad[4];
      interleave(x[0], x[1], x[2], x[3], quad);
      for (int part_of = 0; part_of < parts; ++part_of, w += kOutputs * kQuadWeights)
        LITE_UNROLL for (int o = 0; o < kOutputs; ++o)
          LITE_UNROLL for (int i = 0; i < 4; ++i)
            acc[o][i] = dot_four(acc[o][i], quad[i], w + o * kQuadWeights + i * kBlock);
    }
    if (!kPairs || !d.half_quad) continue;
    B low, high, pairs[4];
    interleave_pair(read<kFill>(t, column, c, part, flip),
                    read<kFill>(t, column + 1, c, part, flip), &low, &high);
    interleave_pair(low, B{}, &pairs[0], &pairs[1]);
    interleave_pair(high, B{}, &pairs[2], &pairs[3]);
    LITE_UNROLL for (int o = 0; o < kOutputs; ++o)
      LITE_UNROLL for (int i = 0; i < 4; ++i)
        acc[o][i] = dot_two(acc[o][i], (I)pairs[i], w + o * kQuadWeights + i * kBlock);
    column += 4;
    w += kOutputs * kQuadWeights;
  }
  finish<kOutputs, kFill>(d, t, c, part, acc);
}

// 3x3: six columns make two quads; kOutputs of each.
template <int kOutputs, bool kSplit, Fill kFill>
LITE_INLINE void paired_block(const IntDepthwise& d, const TileArgs& t, int64_t c, int part) {
  const TapWeight* w = d.weights + c / kBlock * d.block_weights;
  I acc[2 * kOutputs][4];
  start(d, c, acc);
  const B flip = splat_byte(d.flip ? 0x80 : 0);
  const int parts = kSplit ? d.parts : 1;
  for (int ky = 0; ky < 3; ++ky, w += parts * kOutputs * kQuadWeights) {
    B low[3], high[3];
    LITE_UNROLL for (int j = 0; j < 3; ++j)
      interleave_pair(read<kFill>(t, 6 * ky + 2 * j, c, part, flip),
                      read<kFill>(t, 6 * ky + 2 * j + 1, c, part, flip), &low[j], &high[j]);
    LITE_UNROLL for (int q = 0; q < 2; ++q) {
      I quad[4];
      interleave_pairs(low[q], low[q + 1], quad);
      interleave_pairs(high[q], high[q + 1], quad + 2);
      for (int part_of = 0; part_of < parts; ++part_of)
        LITE_UNROLL for (int o = 0; o < kOutputs; ++o)
          LITE_UNROLL for (int i = 0; i < 4; ++i) {
            I& sum = acc[q * kOutputs + o][i];
            const int at = part_of * kOutputs + o;
            sum = dot_four(sum, quad[i], w + at * kQuadWeights + i * kBlock);
          }
    }
  }
  finish<2 * kOutputs, kFill>(d, t, c, part, acc);
}

template <int kOutputs, bool kPaired, bool kSplit, Fill kFill>
LITE_INLINE void any_block(const IntDepthwise& d, const TileArgs& t, int64_t c, int part) {
  if (kPaired) paired_block<kOutputs, kSplit, kFill>(d, t, c, part);
  else block<kOutputs, kSplit, kFill>(d, t, c, part);
}

template <int kOutputs, bool kPaired, bool kSplit>
void tile(const IntDepthwise& d, const TileArgs& t) {
  int64_t c = t.begin;
  for (; c + kBlock <= t.end; c += kBlock)
    any_block<kOutputs, kPaired, kSplit, kWhole>(d, t, c, 0);
  const int part = static_cast<int>(t.end - c);
  if (part == 0) return;
  if constexpr (kHalves) {
    if (t.other) return any_block<kOutputs, kPaired, kSplit, kTwice>(d, t, c, part);
  }
  any_block<kOutputs, kPaired, kSplit, kPart>(d, t, c, part);
}

using TileFn = void (*)(const IntDepthwise&, const TileArgs&);

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
        int32_t sum = 0;
        for (int64_t ky = 0; ky < kh; ++ky)
          for (int64_t kx = 0; kx < kw; ++kx) {
            int32_t v = centred_weight(d.quant, w, c, (c * kh + ky) * kw + kx);
            sum += v;
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
  d->tile_outputs = d->paired ? 2 * d->outputs : d->outputs;
  d->quads = static_cast<int32_t>((s.kernel[1] + d->outputs - 1 + 3) / 4);
  const int64_t last = (s.kernel[1] + d->outputs - 1) % 4;
  d->half_quad = kPairs && !d->paired && (last == 1 || last == 2);
  d->columns = d->paired ? 6 : 4 * d->quads;
  d->rows_of_taps = s.kernel[0];
  d->halved = kHalves && s.out.c % kBlock == kBlock / 2 && s.out.w > d->tile_outputs;
  d->parts = parts_of(*d, *o.w);
  d->block_weights = s.kernel[0] * d->quads * d->parts * d->outputs * kQuadWeights;
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
  set_variant(step, "%s__" LITE_ISA_NAME "_%dx%d", step.kernel->name, d->tile_outputs,
              kBlock);
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
  if (all && top >= 0 && top + (s.kernel[0] - 1) * s.dilation[0] < s.in.h) {
    const uint8_t* from = image + top * s.in.row + first * s.in.pixel;
    for (int64_t i = 0; i < d.rows_of_taps * d.columns; ++i) pointers[i] = from + d.offsets[i];
    return;
  }
  for (int64_t ky = 0; ky < s.kernel[0]; ++ky, pointers += d.columns) {
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
      part_of(d.grid, s.out.images * s.out.h, 1, d.blocks, thread);
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
  const TileFn run_tile = kTiles[d.outputs - 1][d.paired][d.parts > 1];
  TileArgs t;
  t.pointers = pointers;
  const int64_t tiles = (s.out.w + d.tile_outputs - 1) / d.tile_outputs;
  const int64_t end = block_end * kBlock < s.out.c ? block_end * kBlock : s.out.c;
  const bool halved = d.halved && block_end == d.blocks;
  const int64_t halves_at = halved ? (d.blocks - 1) * kBlock : end;
  for (int64_t row = row_begin; row < row_end; ++row) {
    const int64_t image = row / s.out.h, y = row - image * s.out.h;
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
    {"QLinearConv", "i8_conv2d_depthwise", prepare, run, kAcceptsPitch | kAcceptsHalo},
};

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(int8_depthwise, kInt8Depthwise)
