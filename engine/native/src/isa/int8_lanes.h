// kLanes bytes as int32 and back, for integer kernels that work element by element.
//
// `flip` is 0x80 for i8 and 0 for u8: bytes are read as unsigned numbers, 128 too high for i8.
#pragma once

#include "vec.h"

namespace lite::LITE_ISA {

typedef uint8_t LaneBytes __attribute__((vector_size(kLanes)));

LITE_INLINE I widen(const uint8_t* p, uint8_t flip) {
  LaneBytes v;
  memcpy(&v, p, sizeof v);
  return __builtin_convertvector(v ^ flip, I);
}
// The first n bytes; the other lanes are any number.
LITE_INLINE I widen_part(const uint8_t* p, int n, uint8_t flip) {
#if defined(__AVX512BW__)
  const LaneBytes v = (LaneBytes)_mm_maskz_loadu_epi8(first_lanes(n), p);
  return __builtin_convertvector(v ^ flip, I);
#else
  uint8_t whole[kLanes] = {};
  for (int i = 0; i < n; ++i) whole[i] = p[i];
  return widen(whole, flip);
#endif
}
// Numbers of 0 ... 255.
LITE_INLINE void shorten(uint8_t* p, I v, uint8_t flip) {
  const LaneBytes b = __builtin_convertvector(v, LaneBytes) ^ flip;
  memcpy(p, &b, sizeof b);
}
LITE_INLINE void shorten_part(uint8_t* p, I v, int n, uint8_t flip) {
#if defined(__AVX512BW__)
  const LaneBytes b = __builtin_convertvector(v, LaneBytes) ^ flip;
  _mm_mask_storeu_epi8(p, first_lanes(n), (__m128i)b);
#else
  uint8_t whole[kLanes];
  shorten(whole, v, flip);
  for (int i = 0; i < n; ++i) p[i] = whole[i];
#endif
}

// round(real / scale) + zero within 0 ... 255; NaN gives 0.
LITE_INLINE I quantise(F real, F scale, float zero) {
  const F low = splat(0.0f - zero), high = splat(255.0f - zero), q = real / scale;
  const F above = select(q > low, q, low);
  return to_int(select(above < high, above, high)) + static_cast<int32_t>(zero);
}

}  // namespace lite::LITE_ISA
