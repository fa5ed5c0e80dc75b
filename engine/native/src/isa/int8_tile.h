// The register tile of integer matrix work: int32 sums of byte products, requantised to bytes.
//
// What an operand looks like depends on the instructions there are:
//   AVX512-VNNI   activations as unsigned bytes, read in place; 4 products per lane (vpdpbusd)
//   AArch64 dot   activations as signed bytes, read in place; 4 products per lane (sdot)
//   x86 without   activations copied as int16 minus zero point; 2 products per lane (pmaddwd)
//   NEON without  the same copy; 1 product per lane (smlal)
// In place, bytes of the other signedness are flipped by 128 on the fly (0x80 exclusive or), and
// the zero point is folded into the bias of each tap window. All variants give the same integers.
#pragma once

#include "f32_tile.h"

namespace lite::LITE_ISA {

#if defined(__AVX512VNNI__)
constexpr bool kBytesInPlace = true, kDotSigned = false;
constexpr int kDepth = 4;
typedef int8_t IntWeight;
#elif defined(__ARM_FEATURE_DOTPROD)
constexpr bool kBytesInPlace = true, kDotSigned = true;
constexpr int kDepth = 4;
typedef int8_t IntWeight;
#elif defined(__SSE2__)
constexpr bool kBytesInPlace = false, kDotSigned = true;
constexpr int kDepth = 2;
typedef int16_t IntWeight;
#else
constexpr bool kBytesInPlace = false, kDotSigned = true;
constexpr int kDepth = 1;
typedef int16_t IntWeight;
#endif
constexpr int kOperandBytes = kBytesInPlace ? 1 : 2;

struct IntTile {
  const uint8_t* a;
  ptrdiff_t lda, tap_y, tap_x;      // bytes
  int32_t taps_y, taps_x;
  ptrdiff_t groups;                 // of kDepth products
  int32_t tail;                     // products after the last whole group (bytes in place only)
  const IntWeight* w;               // [ky][kx][group][column][kDepth]
  ptrdiff_t w_y;                    // elements from one row of taps to the next
  const int32_t* bias;              // kTileColumns
  const float* scale;               // columns readable up to a whole vector
  int32_t zero;                     // of y as an unsigned byte
  uint8_t low, high, flip;          // clamp of that byte; 0x80 when y is signed
  uint8_t* c;
  ptrdiff_t ldc;
  int32_t columns;
  const void* prefetch;
};
using IntTileFn = void (*)(const IntTile&);

// kIntTile[flip activations][vectors - 1][rows - 1]
extern const IntTileFn kIntTile[2][2][kTileRows];

typedef uint8_t B __attribute__((vector_size(4 * kLanes)));

// Four vectors → the unsigned bytes clamp(v + zero, 0, 255), in order.
LITE_INLINE B narrow(I v0, I v1, I v2, I v3, int32_t zero) {
#if defined(__AVX512F__)
  const __m512i low = _mm512_packs_epi32((__m512i)v0, (__m512i)v1);
  const __m512i high = _mm512_packs_epi32((__m512i)v2, (__m512i)v3);
  const __m512i z = _mm512_set1_epi16(static_cast<int16_t>(zero));
  const __m512i bytes = _mm512_packus_epi16(_mm512_adds_epi16(low, z), _mm512_adds_epi16(high, z));
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return (B)_mm512_permutexvar_epi32(order, bytes);
#elif defined(__AVX2__)
  const __m256i low = _mm256_packs_epi32((__m256i)v0, (__m256i)v1);
  const __m256i high = _mm256_packs_epi32((__m256i)v2, (__m256i)v3);
  const __m256i z = _mm256_set1_epi16(static_cast<int16_t>(zero));
  const __m256i bytes = _mm256_packus_epi16(_mm256_adds_epi16(low, z), _mm256_adds_epi16(high, z));
  return (B)_mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
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

LITE_INLINE B min(B a, B b) { return a < b ? a : b; }
LITE_INLINE B max(B a, B b) { return a > b ? a : b; }
LITE_INLINE B splat_byte(uint8_t v) { return v - B{}; }

// round(sum * scale), never past what int32 holds. The cap leaves every byte result as it is.
LITE_INLINE I rescale(I sum, F scale) {
  return to_int(min(splat(1e9f), to_float(sum) * scale));
}

}  // namespace lite::LITE_ISA
