// Register tiles of the depthwise convolution of bytes: one dot product adds four taps of a channel.
#pragma once

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
  int32_t tile_rows;          // of output, in the tiles of int8_depthwise_rows.h: 1 or 2; else 0
  bool paired;                // 3x3 of stride 1 or 2: two quads that share two of six columns
  int32_t outputs;            // per quad of columns: 2 at stride 1, else 1
  int32_t tile_outputs;
  int32_t quads;              // per kernel row, without overlap
  bool half_quad;             // the last one of a row has two columns or one: pairs of int16
  int32_t columns;            // pointers per kernel row
  int32_t parts;              // bytes whose sum is a centred weight: 1, or up to 3
  int64_t blocks, block_weights, rows_of_taps;
  const TapWeight* weights;   // [block][ky][quad][part][output][vector][lane][tap], or see int8_depthwise_rows.h
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
LITE_INLINE B read(const TileArgs& t, int64_t column, int64_t c, int part) {
  const uint8_t* p = t.pointers[column] + c;
  if constexpr (kFill == kWhole) return load_bytes(p);
#if defined(__AVX512F__)
  if constexpr (kFill == kTwice) {
    const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    const __m256i* other = reinterpret_cast<const __m256i*>(t.other[column] + c);
    // The port of inserts is the one of all shuffles; a broadcast into one half needs none.
    return (B)_mm512_mask_broadcast_i64x4(_mm512_castsi256_si512(low), 0xf0,
                                          _mm256_loadu_si256(other));
  }
#elif defined(__AVX2__)
  if constexpr (kFill == kTwice) {
    const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const __m128i other =
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(t.other[column] + c));
    return (B)_mm256_inserti128_si256(_mm256_castsi128_si256(low), other, 1);
  }
#endif
  return load_bytes(p, part);
}
template <Fill kFill>
LITE_INLINE B read(const TileArgs& t, int64_t column, int64_t c, int part, B flip) {
  return read<kFill>(t, column, c, part) ^ flip;
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

// The last steps of an output's bytes.
struct Bounds {
  B low, high, flip;
  int32_t zero;
  bool plain;                 // the saturation of bytes does it all

  LITE_INLINE explicit Bounds(const QuantParams& q) {
    const uint8_t y_flip = q.y_signed ? 0x80 : 0;
    low = splat_byte(static_cast<uint8_t>(q.low + y_flip));
    high = splat_byte(static_cast<uint8_t>(q.high + y_flip));
    flip = splat_byte(y_flip);
    zero = q.y_zero + y_flip;
    plain = !y_flip && zero == 0 && q.low == 0 && q.high == 255;
  }
  LITE_INLINE B clamp(B v) const { return min(high, max(low, v)) ^ flip; }
};

template <int kOutputs, Fill kFill>
LITE_INLINE void finish(const IntDepthwise& d, const TileArgs& t, int64_t c, int part,
                        I (&acc)[kOutputs][4]) {
  const Bounds bounds(d.quant);
  F scale[4];
  LITE_UNROLL for (int i = 0; i < 4; ++i) scale[i] = load(d.scale + c + i * kLanes);
  LITE_UNROLL for (int o = 0; o < kOutputs; ++o) {
    LITE_UNROLL for (int i = 0; i < 4; ++i) acc[o][i] = rescale(acc[o][i], scale[i]);
    const B bytes = narrow_lanes(acc[o][0], acc[o][1], acc[o][2], acc[o][3], bounds.zero);
    const int64_t at = o * d.shape.out.pixel + c;
    write<kFill>(t.out + at, t.other_out + at, part, bounds.clamp(bytes));
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

}  // namespace
}  // namespace lite::LITE_ISA
