// WebAssembly's vectors under the names of SSE2, whose integer operations they share, so that kernels
// are written once. `-D__SSE2__` comes from the build.
#pragma once

#include <wasm_simd128.h>

typedef v128_t __m128;
typedef v128_t __m128i;

// The second operand where either is NaN, as minps and maxps.
static inline __m128 _mm_min_ps(__m128 a, __m128 b) { return wasm_f32x4_pmin(b, a); }
static inline __m128 _mm_max_ps(__m128 a, __m128 b) { return wasm_f32x4_pmax(b, a); }
static inline __m128 _mm_sqrt_ps(__m128 v) { return wasm_f32x4_sqrt(v); }
// Saturates where cvtps2dq gives the lowest number; kernels keep values within.
static inline __m128i _mm_cvtps_epi32(__m128 v) {
  return wasm_i32x4_trunc_sat_f32x4(wasm_f32x4_nearest(v));
}

static inline __m128i _mm_set1_epi16(int16_t v) { return wasm_i16x8_splat(v); }
static inline __m128i _mm_madd_epi16(__m128i a, __m128i b) { return wasm_i32x4_dot_i16x8(a, b); }
static inline __m128i _mm_adds_epi16(__m128i a, __m128i b) { return wasm_i16x8_add_sat(a, b); }
static inline __m128i _mm_packs_epi32(__m128i a, __m128i b) { return wasm_i16x8_narrow_i32x4(a, b); }
static inline __m128i _mm_packus_epi16(__m128i a, __m128i b) { return wasm_u8x16_narrow_i16x8(a, b); }
static inline __m128i _mm_unpacklo_epi8(__m128i a, __m128i b) {
  return wasm_i8x16_shuffle(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
static inline __m128i _mm_unpackhi_epi8(__m128i a, __m128i b) {
  return wasm_i8x16_shuffle(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}
static inline __m128i _mm_unpacklo_epi16(__m128i a, __m128i b) {
  return wasm_i16x8_shuffle(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
}
static inline __m128i _mm_unpackhi_epi16(__m128i a, __m128i b) {
  return wasm_i16x8_shuffle(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
}
