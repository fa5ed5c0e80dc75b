// How integer tiles multiply bytes by sums of pairs in 16 bits, and what tells that none saturates (int8_bounds.h).
#pragma once

#include "int8_bounds.h"

#if defined(LITE_SATURATES)

namespace lite::LITE_ISA {
namespace {

// The four products of every lane, two by two, as 16-bit numbers.
template <bool kFlip, int kRows, int kVectors>
LITE_INLINE void wide_group(I (&acc)[kRows][kVectors], const uint8_t* a, ptrdiff_t lda, const IntWeight* w) {
  __m256i even[kVectors], odd[kVectors];
  LITE_UNROLL for (int n = 0; n < kVectors; ++n) {
    const __m256i b = (__m256i)load_bytes(reinterpret_cast<const uint8_t*>(w) + n * kLanes * kDepth);
    even[n] = _mm256_srai_epi16(_mm256_slli_epi16(b, 8), 8);
    odd[n] = _mm256_srai_epi16(b, 8);
  }
  LITE_UNROLL for (int m = 0; m < kRows; ++m) {
    int32_t four;
    memcpy(&four, a + m * lda, sizeof four);
    if (kFlip) four ^= static_cast<int32_t>(0x80808080);
    const __m256i x = (__m256i)splat(four);
    const __m256i x_even = _mm256_and_si256(x, _mm256_set1_epi16(0xff)), x_odd = _mm256_srli_epi16(x, 8);
    LITE_UNROLL for (int n = 0; n < kVectors; ++n)
      acc[m][n] += (I)_mm256_madd_epi16(x_even, even[n]) + (I)_mm256_madd_epi16(x_odd, odd[n]);
  }
}

// The same by sums of pairs. All but one vector of weights stay in memory: registers are few.
template <bool kFlip, int kRows, int kVectors>
LITE_INLINE void pair_group(I (&acc)[kRows][kVectors], const uint8_t* a, ptrdiff_t lda, const IntWeight* w) {
  const __m256i ones = _mm256_set1_epi16(1), first = (__m256i)load_bytes(reinterpret_cast<const uint8_t*>(w));
  LITE_UNROLL for (int m = 0; m < kRows; ++m) {
    int32_t four;
    memcpy(&four, a + m * lda, sizeof four);
    I x = splat(four);
    if (kFlip) x ^= static_cast<int32_t>(0x80808080);
    LITE_UNROLL for (int n = 0; n < kVectors; ++n) {
      __m256i pairs = first;
      if (n == 0) pairs = _mm256_maddubs_epi16((__m256i)x, pairs);
      else asm("vpmaddubsw %2, %1, %0" : "=x"(pairs) : "x"(x), "m"(reinterpret_cast<const __m256i_u*>(w)[n]));
      acc[m][n] += (I)_mm256_madd_epi16(pairs, ones);
    }
  }
}

constexpr int kRun = 4 * kLanes;  // operands that are tested at a time

// Whether sums of pairs of operands, at most kMostPair by their bounds, do not saturate.
LITE_INLINE bool they_fit(__m256i most) {
  return !_mm256_movemask_epi8(_mm256_cmpgt_epi16(most, _mm256_set1_epi16(kMostPair)));
}
// A run of n operands, a multiple of kDepth up to kRun. A shorter one is read as two parts that overlap, which a
// maximum does not mind.
LITE_INLINE B load_run(const uint8_t* p, int n) {
  if (n == kRun) return load_bytes(p);
  if (n >= 16) {
    const __m128i first = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const __m128i last = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + n - 16));
    return (B)_mm256_inserti128_si256(_mm256_castsi128_si256(first), last, 1);
  }
  const __m128i first = n >= 8 ? _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)) : _mm_loadu_si32(p);
  const __m128i last = n >= 8 ? _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p + n - 8)) : first;
  return (B)_mm256_zextsi128_si256(_mm_unpacklo_epi64(first, last));
}

// Of a run of n operands of every row.
template <bool kFlip, int kRows>
LITE_INLINE bool run_fits(const uint8_t* a, ptrdiff_t lda, const uint8_t* bounds, int n) {
  const __m256i u = (__m256i)load_run(bounds, n);
  __m256i most = _mm256_setzero_si256();
  LITE_UNROLL for (int m = 0; m < kRows; ++m) {
    const B x = load_run(a + m * lda, n) ^ splat_byte(kFlip ? 0x80 : 0);
    most = _mm256_max_epi16(most, _mm256_maddubs_epi16((__m256i)x, u));
  }
  return they_fit(most);
}

// Of all operands of a tile, sooner: by the largest of all rows.
template <bool kFlip, int kRows>
LITE_INLINE bool tile_fits(const IntTile& t) {
  const int64_t bytes = t.groups * kDepth;
  __m256i most = _mm256_setzero_si256();
  const auto meet = [&](const uint8_t* a, const uint8_t* bounds, int n) __attribute__((always_inline)) {
    __m256i x = (__m256i)load_run(a, n);
    LITE_UNROLL for (int m = 1; m < kRows; ++m) {
      const __m256i row = (__m256i)load_run(a + m * t.lda, n);
      x = kFlip ? _mm256_max_epi8(x, row) : _mm256_max_epu8(x, row);
    }
    if (kFlip) x = _mm256_xor_si256(x, _mm256_set1_epi8(-128));
    most = _mm256_max_epi16(most, _mm256_maddubs_epi16(x, (__m256i)load_run(bounds, n)));
  };
  for (int y = 0; y < t.taps_y; ++y)
    for (int x = 0; x < t.taps_x; ++x) {
      const uint8_t* a = t.a + y * t.tap_y + x * t.tap_x;
      const uint8_t* bounds = t.bounds + y * t.bounds_y + x * bytes;
      int64_t i = 0;
      for (; i + kRun <= bytes; i += kRun) meet(a + i, bounds + i, kRun);
      if (i < bytes) meet(a + i, bounds + i, static_cast<int>(bytes - i));
    }
  return they_fit(most);
}

// Groups of all operands, tested run by run.
template <bool kFlip, int kRows, int kVectors>
LITE_INLINE void tested_groups(I (&acc)[kRows][kVectors], const uint8_t* a, ptrdiff_t lda, const IntWeight*& w,
                               const uint8_t*& bounds, ptrdiff_t groups) {
  constexpr int kStep = kVectors * kLanes * kDepth, kMost = kRun / kDepth;
  for (; groups > 0; groups -= kMost) {
    const int here = static_cast<int>(groups < kMost ? groups : kMost);
    const bool fits = run_fits<kFlip, kRows>(a, lda, bounds, here * kDepth);
    for (int i = 0; fits && i < here; ++i, a += kDepth, w += kStep) pair_group<kFlip>(acc, a, lda, w);
    for (int i = 0; !fits && i < here; ++i, a += kDepth, w += kStep) wide_group<kFlip>(acc, a, lda, w);
    bounds += here * kDepth;
  }
}

}  // namespace

void find_bounds(const IntWeight* w, int64_t depth, int vectors, uint8_t* bounds) {
  const __m256i ones = _mm256_set1_epi8(1), most = _mm256_set1_epi16(128);
  uint8_t* to = bounds + kBoundsHead;
  int32_t any = 0;
  for (int64_t k = 0; k < depth; k += kDepth, to += kDepth) {
    __m256i largest = _mm256_setzero_si256();
    for (int n = 0; n < vectors; ++n, w += kLanes * kDepth) {
      const __m256i b = (__m256i)load_bytes(reinterpret_cast<const uint8_t*>(w));
      // Of two signs, the sum is 128 at most.
      const __m256i sums = _mm256_abs_epi16(_mm256_maddubs_epi16(ones, b));
      const __m256i size = _mm256_min_epu8(_mm256_abs_epi8(b), _mm256_set1_epi8(127));
      largest = _mm256_max_epu8(largest, _mm256_and_si256(size, _mm256_cmpgt_epi16(sums, most)));
    }
    __m128i four = _mm_max_epu8(_mm256_castsi256_si128(largest), _mm256_extracti128_si256(largest, 1));
    four = _mm_max_epu8(four, _mm_srli_si128(four, 8));
    four = _mm_max_epu8(four, _mm_srli_si128(four, 4));
    const int32_t word = _mm_cvtsi128_si32(four);
    memcpy(to, &word, sizeof word);
    any |= word;
  }
  memcpy(bounds, &any, sizeof any);
}

}  // namespace lite::LITE_ISA

#endif
