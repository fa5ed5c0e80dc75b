// Numbers of bf16 in memory: widened to floats, and floats rounded to them.
#pragma once

#include <string.h>

#include "vec.h"

namespace lite::LITE_ISA {

typedef uint16_t Short __attribute__((vector_size(2 * kLanes)));
typedef Short ShortU __attribute__((aligned(2), may_alias));

LITE_INLINE F widened(Short v) { return as_float((I)(__builtin_convertvector(v, I) << 16)); }

inline void widen(const uint16_t* from, float* to, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    store(to + i, widened(*reinterpret_cast<const ShortU*>(from + i)));
  for (; i < n; ++i) {
    const uint32_t bits = static_cast<uint32_t>(from[i]) << 16;
    memcpy(to + i, &bits, sizeof bits);
  }
}

// Ties to even; NaN stays NaN.
LITE_INLINE Short rounded(F v) {
#if defined(__AVX512BF16__)
  return (Short)_mm512_cvtneps_pbh((__m512)v);
#else
  const I bits = as_int(v);
  const I near = bits + 0x7fff + (bits >> 16 & 1);
  return __builtin_convertvector((v != v ? bits | 0x400000 : near) >> 16, Short);
#endif
}

inline void round(const float* from, uint16_t* to, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    *reinterpret_cast<ShortU*>(to + i) = rounded(load(from + i));
  if (i == n) return;
  const Short rest = rounded(load_part(from + i, static_cast<int>(n - i)));
  memcpy(to + i, &rest, static_cast<size_t>(n - i) * sizeof *to);
}

}  // namespace lite::LITE_ISA
