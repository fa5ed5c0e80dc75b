// Numbers as the tile's products take them: floats, or pairs of bf16 where there are products of these.
#pragma once

#include <string.h>

#include "f32_tile.h"

namespace lite::LITE_ISA {

#if defined(LITE_PAIRS)
LITE_INLINE void round_floats(const float* x, uint16_t* y, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const __m256bh v = _mm512_cvtneps_pbh((__m512)load(x + i));
    memcpy(y + i, &v, sizeof v);
  }
  if (i < n) {
    const __m256bh v = _mm512_cvtneps_pbh((__m512)load_part(x + i, static_cast<int>(n - i)));
    memcpy(y + i, &v, static_cast<size_t>(n - i) * sizeof *y);
  }
}
#endif

LITE_INLINE F multiply_add(F a, F b, F sum) {
#if defined(LITE_PAIRS)
  // NOTE: as vpdpbusd, the intrinsic makes gcc 12 copy accumulators around.
  asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
  return sum;
#else
  return fma(a, b, sum);
#endif
}

#if !defined(LITE_FP16)
// k of a product over n numbers, kProducts at a time.
LITE_INLINE int64_t product_length(int64_t n) { return (n + kProducts - 1) / kProducts; }

// n numbers as the left factor of a product; in place, too. Behind an odd one of a pair lies a zero.
LITE_INLINE void to_products(const float* x, int64_t n, float* y) {
#if defined(LITE_PAIRS)
  uint16_t* to = reinterpret_cast<uint16_t*>(y);
  round_floats(x, to, n);
  if (n % 2) to[n] = 0;
#else
  memmove(y, x, static_cast<size_t>(n) * sizeof(float));
#endif
}
#if defined(LITE_PAIRS)
LITE_INLINE void to_products(const uint16_t* x, int64_t n, float* y) {
  uint16_t* to = reinterpret_cast<uint16_t*>(y);
  memcpy(to, x, static_cast<size_t>(n) * sizeof *x);
  if (n % 2) to[n] = 0;
}
#endif
#endif

}  // namespace lite::LITE_ISA
