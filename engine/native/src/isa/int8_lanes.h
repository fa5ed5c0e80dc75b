// kLanes bytes as int32 and back, for integer kernels that work element by element.
//
// `flip` is 0x80 for i8 and 0 for u8: bytes are read as unsigned numbers, 128 too high for i8.
#pragma once

#include "vec.h"

namespace lite::LITE_ISA {

typedef uint8_t LaneBytes __attribute__((vector_size(kLanes)));

#if defined(__aarch64__)
// gcc 12 would move vectors of four bytes through general registers, byte by byte.
LITE_INLINE uint8x8_t four_bytes(const uint8_t* p) {
  uint32_t four;
  memcpy(&four, p, sizeof four);
  return vreinterpret_u8_u32(vdup_n_u32(four));
}
LITE_INLINE I widen(const uint8_t* p, uint8_t flip) {
  return (I)vmovl_u16(vget_low_u16(vmovl_u8(veor_u8(four_bytes(p), vdup_n_u8(flip)))));
}
template <bool kSigned>
LITE_INLINE I widen(const uint8_t* p) {
  const uint8x8_t v = four_bytes(p);
  if (kSigned) return (I)vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_u8(v))));
  return (I)vmovl_u16(vget_low_u16(vmovl_u8(v)));
}
// Numbers of 0 ... 255.
LITE_INLINE void shorten(uint8_t* p, I v, uint8_t flip) {
  const uint16x4_t two = vmovn_u32((uint32x4_t)v);
  const uint8x8_t b = veor_u8(vmovn_u16(vcombine_u16(two, two)), vdup_n_u8(flip));
  const uint32_t four = vget_lane_u32(vreinterpret_u32_u8(b), 0);
  memcpy(p, &four, sizeof four);
}
#else
LITE_INLINE I widen(const uint8_t* p, uint8_t flip) {
  LaneBytes v;
  memcpy(&v, p, sizeof v);
  return __builtin_convertvector(v ^ flip, I);
}
// Bytes as the numbers that they are.
template <bool kSigned>
LITE_INLINE I widen(const uint8_t* p) {
  typedef int8_t SignedBytes __attribute__((vector_size(kLanes)));
  LaneBytes v;
  memcpy(&v, p, sizeof v);
#if defined(__x86_64__) && !defined(__clang__)
  asm("" : "+x"(v));  // NOTE: gcc 12 takes bytes apart one by one where it sees them come from memory
#endif
  if (kSigned) return __builtin_convertvector((SignedBytes)v, I);
  return __builtin_convertvector(v, I);
}
// Numbers of 0 ... 255.
LITE_INLINE void shorten(uint8_t* p, I v, uint8_t flip) {
  const LaneBytes b = __builtin_convertvector(v, LaneBytes) ^ flip;
  memcpy(p, &b, sizeof b);
}
#endif
// The first n bytes; the other lanes are any number.
LITE_INLINE I widen_part(const uint8_t* p, int n, uint8_t flip) {
#if defined(__AVX512BW__)
  touches(p, n);
  const LaneBytes v = (LaneBytes)_mm_maskz_loadu_epi8(first_lanes(n), p);
  return __builtin_convertvector(v ^ flip, I);
#else
  uint8_t whole[kLanes] = {};
  for (int i = 0; i < n; ++i) whole[i] = p[i];
  return widen(whole, flip);
#endif
}
LITE_INLINE void shorten_part(uint8_t* p, I v, int n, uint8_t flip) {
#if defined(__AVX512BW__)
  const LaneBytes b = __builtin_convertvector(v, LaneBytes) ^ flip;
  touches(p, n);
  _mm_mask_storeu_epi8(p, first_lanes(n), (__m128i)b);
#else
  uint8_t whole[kLanes];
  shorten(whole, v, flip);
  for (int i = 0; i < n; ++i) p[i] = whole[i];
#endif
}

// A product that is rounded before it is added to: the compiler must not make one operation of both.
LITE_INLINE F rounded(F v) {
#if defined(__x86_64__)
  asm("" : "+v"(v));
#elif defined(__ARM_NEON)
  asm("" : "+w"(v));
#else
  asm("" : "+r"(v));
#endif
  return v;
}

// real / scale for many real numbers, rounded as one division is: a product with the reciprocal, twice
// corrected by its exact remainder (Markstein, IBM J. Res. Dev. 34, 1990), where fma() is one operation
// and wide divisions take 16 cycles.
struct Divisor {
  F scale, reciprocal;
  bool product;
};
LITE_INLINE Divisor divisor(float scale) {
#if defined(__FMA__)
  const bool product = scale > 1e-30f && scale < 1e30f;
#else
  const bool product = false;
#endif
  return {splat(scale), splat(1.0f / scale), product};
}
// For quotients below 1e6.
LITE_INLINE F divide(F real, const Divisor& d) {
  if (!d.product) return real / d.scale;
  const F near = real * d.reciprocal;
  const F once = fma(fma(-near, d.scale, real), d.reciprocal, near);
  return fma(fma(-once, d.scale, real), d.reciprocal, once);
}

// The larger number; `low` where v is NaN.
LITE_INLINE F at_least(F low, F v) {
#if !defined(__ARM_NEON)
  return max(v, low);  // maxps gives its second operand then
#else
  return select(v > low, v, low);
#endif
}

// round(real) + zero within 0 ... 255; NaN gives 0.
LITE_INLINE I whole_byte(F real, float zero) {
  const F low = splat(0.0f - zero), high = splat(255.0f - zero);
  return to_int(min(high, at_least(low, real))) + static_cast<int32_t>(zero);
}

}  // namespace lite::LITE_ISA
