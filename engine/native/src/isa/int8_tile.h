// The register tile of integer matrix work: int32 sums of byte products, requantised to bytes:
//
//   clamp(round(float(sum) * scale + float(r - residual_zero) * residual_scale) + zero)
//
// What an operand looks like depends on the instructions there are:
//   VNNI          activations as unsigned bytes, read in place; 4 products per lane (vpdpbusd)
//   AArch64 i8mm  activations as they are; 8 products for 2 rows x 2 columns (smmla, usmmla)
//   AArch64 dot   activations as signed bytes, read in place; 4 products per lane (sdot)
//   avx2bytes     activations as unsigned bytes, read in place; 4 products per lane (pmaddubsw, pmaddwd),
//                 after a test that no sum of two leaves 16 bits: int8_bounds.h
//   x86 without   activations copied as int16 minus zero point; 2 products per lane (pmaddwd)
//   NEON without  the same copy; 1 product per lane (smlal)
// Bytes of the other signedness are flipped by 128 (0x80 exclusive or) as they are read, except where
// instructions take either (kEitherSign); the zero point is folded into the bias of each tap window.
// Weights are centred as they are packed; where bytes do not hold that, sum x (w - z) = sum x w - z sum x.
// Channels that do not fill whole groups are copied, padded. All variants give the same integers.
#pragma once

#include "f32_tile.h"
#include "int8_addend.h"

namespace lite::LITE_ISA {

// Of 512 bits, or of 256 bits without the rest of AVX-512.
#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
#define LITE_VNNI
#endif

#if defined(LITE_VNNI) || defined(LITE_SATURATES)
constexpr bool kBytes = true, kDotSigned = false;
constexpr int kDepth = 4;
typedef int8_t IntWeight;
typedef uint8_t Operand;
#elif defined(__ARM_FEATURE_MATMUL_INT8)
constexpr bool kBytes = true, kDotSigned = true;
constexpr int kDepth = 8;
typedef int8_t IntWeight;
typedef uint8_t Operand;
#elif defined(__ARM_FEATURE_DOTPROD)
constexpr bool kBytes = true, kDotSigned = true;
constexpr int kDepth = 4;
typedef int8_t IntWeight;
typedef uint8_t Operand;
#elif defined(__SSE2__)
constexpr bool kBytes = false, kDotSigned = true;
constexpr int kDepth = 2;
typedef int16_t IntWeight;
typedef int16_t Operand;
#else
constexpr bool kBytes = false, kDotSigned = true;
constexpr int kDepth = 1;
typedef int16_t IntWeight;
typedef int16_t Operand;
#endif
// Fetching a panel takes longer than two tiles of it.
constexpr int kAheadTiles = 4;
constexpr int kOperandBytes = sizeof(Operand);
#if defined(__ARM_FEATURE_MATMUL_INT8)
constexpr bool kEitherSign = true;
#else
constexpr bool kEitherSign = false;
#endif

#if defined(LITE_VNNI)
#if defined(__AVX512VNNI__)
#define LITE_DOT(name) name
#else
#define LITE_DOT(name) "%{vex%} " name
#endif
// acc += the sum of four products of unsigned with signed bytes, and of two of 16-bit numbers.
// NOTE: gcc 12 copies the accumulators of _mm512_dpbusd_epi32 around and spills them.
LITE_INLINE void dot_bytes(I& acc, I x, I w) {
  asm(LITE_DOT("vpdpbusd %2, %1, %0") : "+v"(acc) : "v"(x), "v"(w));
}
LITE_INLINE void dot_shorts(I& acc, I x, I w) {
  asm(LITE_DOT("vpdpwssd %2, %1, %0") : "+v"(acc) : "v"(x), "v"(w));
}
#endif

// acc += the products in every lane.
#if defined(LITE_VNNI)
LITE_INLINE void dot(I& acc, I x, I w) { dot_bytes(acc, x, w); }
#elif defined(LITE_SATURATES)  // where the bounds allow it
LITE_INLINE void dot(I& acc, I x, I w) {
  const __m256i pairs = _mm256_maddubs_epi16((__m256i)x, (__m256i)w);
  acc += (I)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}
#elif defined(__AVX512F__)
LITE_INLINE void dot(I& acc, I x, I w) { acc += (I)_mm512_madd_epi16((__m512i)x, (__m512i)w); }
#elif defined(__AVX2__)
LITE_INLINE void dot(I& acc, I x, I w) { acc += (I)_mm256_madd_epi16((__m256i)x, (__m256i)w); }
#elif defined(__SSE2__)
LITE_INLINE void dot(I& acc, I x, I w) { acc += (I)_mm_madd_epi16((__m128i)x, (__m128i)w); }
#elif defined(__ARM_FEATURE_DOTPROD)  // i8mm too: sums of rows
LITE_INLINE void dot(I& acc, I x, I w) {
  acc = (I)vdotq_s32((int32x4_t)acc, (int8x16_t)x, (int8x16_t)w);
}
#endif

#if defined(__ARM_NEON) && !defined(__ARM_FEATURE_DOTPROD)
// Plain NEON: acc += four int16 of every row of A, multiplied by lane, times four vectors of weights.
// One by one they would go through a general register each.
constexpr int kFour = 4;
template <int kLane, int kRows, int kVectors>
LITE_INLINE void multiply_lane(I (&acc)[kRows][kVectors], const int16x4_t (&x)[kRows],
                               const int16_t* w) {
  LITE_UNROLL for (int n = 0; n < kVectors; ++n) {
    const int16x4_t b = vld1_s16(w + (kLane * kVectors + n) * kLanes);
    LITE_UNROLL for (int m = 0; m < kRows; ++m)
      acc[m][n] = (I)vmlal_lane_s16((int32x4_t)acc[m][n], b, x[m], kLane);
  }
}
template <int kRows, int kVectors>
LITE_INLINE void multiply_four(I (&acc)[kRows][kVectors], const uint8_t* a, ptrdiff_t lda,
                               const int16_t* w) {
  int16x4_t x[kRows];
  LITE_UNROLL for (int m = 0; m < kRows; ++m) memcpy(&x[m], a + m * lda, sizeof x[m]);
  multiply_lane<0>(acc, x, w);
  multiply_lane<1>(acc, x, w);
  multiply_lane<2>(acc, x, w);
  multiply_lane<3>(acc, x, w);
}
#endif

// Whether the second half of a tile's rows may lie elsewhere: two image rows of seven pixels.
#if defined(__AVX512F__)
constexpr bool kFolds = true;
#else
constexpr bool kFolds = false;
#endif
constexpr int kHalfRows = kTileRows / 2;

struct IntTile {
  const uint8_t* a;
  ptrdiff_t lda, tap_y, tap_x;      // bytes
  ptrdiff_t half_a, half_c, half_r; // with kFolds: from row 0 of a, c, residual to row kHalfRows
  int32_t taps_y, taps_x;
  ptrdiff_t groups;                 // of kDepth products
  const IntWeight* w;               // [ky][kx][group][column][kDepth]
  ptrdiff_t w_y;                    // elements from one row of taps to the next
  const uint8_t* bounds = nullptr;  // of these weights, where they have any (int8_bounds.h)
  ptrdiff_t bounds_y = 0;           // from one row of taps to the next
  const int32_t* bias;              // kTileColumns
  const float* scale;               // columns readable up to a whole vector
  const int32_t* w_zero;            // kTileColumns, times row_sums; or nullptr
  const int32_t* row_sums;          // of every row, with w_zero
  int32_t zero;                     // of y as an unsigned byte
  uint8_t low, high, flip;          // clamp of that byte; 0x80 when y is signed
  uint8_t* c;
  ptrdiff_t ldc;
  int32_t columns;
  const uint8_t* residual;          // bytes like c, added before the rounding; or nullptr
  ptrdiff_t ldr;
  Addend addend;
  const void* prefetch;             // next panel, or nullptr
  int32_t prefetches = 1;           // by the first tiles, a share each
  int32_t count = 1;                // tiles of one height, each below the one before; 1 with real or folded rows
  float* real = nullptr;            // instead of c, in steps of ldc: the sums as floats
  const float* real_bias;
  const float* row_scale;           // of every row, with real
  int32_t fours;                    // columns before the rest, -1: one rounding (dynamic_quantize.cc)
  int32_t* sums = nullptr;          // where the sums go as they are, whole vectors of them; or nullptr
  ptrdiff_t ld_sums;
};
// Leaves the tile as the last one of its count.
using IntTileFn = void (*)(IntTile&);

// From row 0 to row m.
LITE_INLINE ptrdiff_t row_offset(ptrdiff_t m, ptrdiff_t ld, ptrdiff_t half) {
  return kFolds && m >= kHalfRows ? half + (m - kHalfRows) * ld : m * ld;
}

// Sums of the operands that every row of a tile multiplies, for weights whose zero points are not
// subtracted. kRowSums[other sign]; only where products are of bytes.
using RowSumsFn = void (*)(const IntTile&, int rows, int32_t* sums);
extern const RowSumsFn kRowSums[2];

// kIntTile[other sign][vectors - 1][rows - 1]: whether activations have the sign that the products do
// not take, and are flipped, or with kEitherSign are unsigned.
extern const IntTileFn kIntTile[2][2][kTileRows];

typedef uint8_t B __attribute__((vector_size(4 * kLanes)));

// Four vectors → the unsigned bytes clamp(v + zero, 0, 255), in the order that undoes interleave():
// within each 16 bytes four from every vector.
LITE_INLINE B narrow_lanes(I v0, I v1, I v2, I v3, int32_t zero) {
#if defined(__AVX512F__)
  const __m512i low = _mm512_packs_epi32((__m512i)v0, (__m512i)v1);
  const __m512i high = _mm512_packs_epi32((__m512i)v2, (__m512i)v3);
  const __m512i z = _mm512_set1_epi16(static_cast<int16_t>(zero));
  return (B)_mm512_packus_epi16(_mm512_adds_epi16(low, z), _mm512_adds_epi16(high, z));
#elif defined(__AVX2__)
  const __m256i low = _mm256_packs_epi32((__m256i)v0, (__m256i)v1);
  const __m256i high = _mm256_packs_epi32((__m256i)v2, (__m256i)v3);
  const __m256i z = _mm256_set1_epi16(static_cast<int16_t>(zero));
  return (B)_mm256_packus_epi16(_mm256_adds_epi16(low, z), _mm256_adds_epi16(high, z));
#elif defined(__SSE2__)
  const __m128i low = _mm_packs_epi32((__m128i)v0, (__m128i)v1);
  const __m128i high = _mm_packs_epi32((__m128i)v2, (__m128i)v3);
  const __m128i z = _mm_set1_epi16(static_cast<int16_t>(zero));
  return (B)_mm_packus_epi16(_mm_adds_epi16(low, z), _mm_adds_epi16(high, z));
#else
  const int16x8_t z = vdupq_n_s16(static_cast<int16_t>(zero));
  const int16x8_t low = vcombine_s16(vqmovn_s32((int32x4_t)v0), vqmovn_s32((int32x4_t)v1));
  const int16x8_t high = vcombine_s16(vqmovn_s32((int32x4_t)v2), vqmovn_s32((int32x4_t)v3));
  return (B)vcombine_u8(vqmovun_s16(vqaddq_s16(low, z)), vqmovun_s16(vqaddq_s16(high, z)));
#endif
}

// The same bytes, all of v0 first, then v1 and so on.
LITE_INLINE B narrow(I v0, I v1, I v2, I v3, int32_t zero) {
  const B b = narrow_lanes(v0, v1, v2, v3, zero);
#if defined(__AVX512F__)
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return (B)_mm512_permutexvar_epi32(order, (__m512i)b);
#elif defined(__AVX2__)
  return (B)_mm256_permutevar8x32_epi32((__m256i)b, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
#else
  return b;
#endif
}

// Bytes a0 b0 a1 b1 ... of (each 16 bytes of) two vectors: the low and the high half of them.
LITE_INLINE void interleave_pair(B a, B b, B* low, B* high) {
#if defined(__AVX512F__)
  *low = (B)_mm512_unpacklo_epi8((__m512i)a, (__m512i)b);
  *high = (B)_mm512_unpackhi_epi8((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
  *low = (B)_mm256_unpacklo_epi8((__m256i)a, (__m256i)b);
  *high = (B)_mm256_unpackhi_epi8((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
  *low = (B)_mm_unpacklo_epi8((__m128i)a, (__m128i)b);
  *high = (B)_mm_unpackhi_epi8((__m128i)a, (__m128i)b);
#else
  *low = (B)vzip1q_u8((uint8x16_t)a, (uint8x16_t)b);
  *high = (B)vzip2q_u8((uint8x16_t)a, (uint8x16_t)b);
#endif
}

// The same with 16-bit pairs: lanes of four bytes, one of each of four vectors.
LITE_INLINE void interleave_pairs(B ab, B cd, I out[2]) {
#if defined(__AVX512F__)
  out[0] = (I)_mm512_unpacklo_epi16((__m512i)ab, (__m512i)cd);
  out[1] = (I)_mm512_unpackhi_epi16((__m512i)ab, (__m512i)cd);
#elif defined(__AVX2__)
  out[0] = (I)_mm256_unpacklo_epi16((__m256i)ab, (__m256i)cd);
  out[1] = (I)_mm256_unpackhi_epi16((__m256i)ab, (__m256i)cd);
#elif defined(__SSE2__)
  out[0] = (I)_mm_unpacklo_epi16((__m128i)ab, (__m128i)cd);
  out[1] = (I)_mm_unpackhi_epi16((__m128i)ab, (__m128i)cd);
#else
  out[0] = (I)vzip1q_u16((uint16x8_t)ab, (uint16x8_t)cd);
  out[1] = (I)vzip2q_u16((uint16x8_t)ab, (uint16x8_t)cd);
#endif
}

LITE_INLINE void interleave(B a, B b, B c, B d, I out[4]) {
  B ab[2], cd[2];
  interleave_pair(a, b, &ab[0], &ab[1]);
  interleave_pair(c, d, &cd[0], &cd[1]);
  interleave_pairs(ab[0], cd[0], out);
  interleave_pairs(ab[1], cd[1], out + 2);
}

LITE_INLINE B load_bytes(const uint8_t* p) {
  B v;
  memcpy(&v, p, sizeof v);
  return v;
}
LITE_INLINE void store_bytes(uint8_t* p, B v) { memcpy(p, &v, sizeof v); }
#if defined(__AVX2__) && !defined(__AVX512BW__)
LITE_INLINE __m256i first_fours(int n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
#endif
// The first n bytes, 0 < n <= 4 * kLanes; nothing else is touched.
LITE_INLINE B load_bytes(const uint8_t* p, int n) {
#if defined(__AVX512BW__)
  touches(p, n);
  return (B)_mm512_maskz_loadu_epi8(~0ull >> (64 - n), p);
#else
#if defined(__AVX2__)
  if (n % 4 == 0) {
    touches(p, n);
    return (B)_mm256_maskload_epi32(reinterpret_cast<const int*>(p), first_fours(n / 4));
  }
#endif
  uint8_t whole[4 * kLanes] = {};
  for (int i = 0; i < n; ++i) whole[i] = p[i];
  return load_bytes(whole);
#endif
}
LITE_INLINE void store_bytes(uint8_t* p, B v, int n) {
#if defined(__AVX512BW__)
  touches(p, n);
  _mm512_mask_storeu_epi8(p, ~0ull >> (64 - n), (__m512i)v);
#else
#if defined(__AVX2__)
  if (n == 4 * kLanes) return store_bytes(p, v);
  if (n % 4 == 0) {  // masked stores take 20 cycles on some processors
    __m128i part = _mm256_castsi256_si128((__m256i)v);
    if (n & 16) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(p), part);
      part = _mm256_extracti128_si256((__m256i)v, 1);
      p += 16;
    }
    if (n & 8) {
      _mm_storel_epi64(reinterpret_cast<__m128i*>(p), part);
      part = _mm_unpackhi_epi64(part, part);
      p += 8;
    }
    if (n & 4) _mm_storeu_si32(p, part);
    return;
  }
#endif
  uint8_t whole[4 * kLanes];
  store_bytes(whole, v);
  for (int i = 0; i < n; ++i) p[i] = whole[i];
#endif
}

LITE_INLINE B min(B a, B b) { return a < b ? a : b; }
LITE_INLINE B max(B a, B b) { return a > b ? a : b; }
LITE_INLINE B splat_byte(uint8_t v) { return v - B{}; }

// round(sum * scale); read_quant_params makes sure that int32 holds it.
LITE_INLINE I rescale(I sum, F scale) { return to_int(to_float(sum) * scale); }

}  // namespace lite::LITE_ISA
