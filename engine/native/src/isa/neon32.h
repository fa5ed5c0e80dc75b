// What 32-bit NEON lacks of AArch64's, under the same names, so that kernels are written once.
// NEON there counts numbers below 2^-126 as 0, and only newer processors multiply and add at once.
#pragma once

#include <arm_neon.h>
#include <math.h>
#include <stdint.h>

#if !defined(__aarch64__)

static inline float32x4_t vfmaq_f32_or_two(float32x4_t c, float32x4_t a, float32x4_t b) {
#if defined(__ARM_FEATURE_FMA)
  return vfmaq_f32(c, a, b);
#else
  return vmlaq_f32(c, a, b);
#endif
}

static inline float32x4_t vsqrtq_f32(float32x4_t v) {
  for (int i = 0; i < 4; ++i) v[i] = sqrtf(v[i]);
  return v;
}

// To nearest, ties to even: from 2^23 on (infinities and NaN too) every float is whole.
static inline float32x4_t vrndnq_f32(float32x4_t v) {
  const uint32x4_t bits = vreinterpretq_u32_f32(v);
  const uint32x4_t sign = vandq_u32(bits, vdupq_n_u32(0x80000000u));
  const float32x4_t big = vreinterpretq_f32_u32(vorrq_u32(sign, vdupq_n_u32(0x4b000000u)));
  const float32x4_t whole = vsubq_f32(vaddq_f32(v, big), big);
  const uint32x4_t kept = vorrq_u32(vreinterpretq_u32_f32(whole), sign);  // -0 stays -0
  const uint32x4_t small = vcltq_f32(vabsq_f32(v), vdupq_n_f32(8388608.0f));
  return vreinterpretq_f32_u32(vbslq_u32(small, kept, bits));
}

static inline float32x4_t vrndmq_f32(float32x4_t v) {
  const float32x4_t whole = vrndnq_f32(v);
  const float32x4_t less = vsubq_f32(whole, vdupq_n_f32(1.0f));
  return vbslq_f32(vcgtq_f32(whole, v), less, whole);
}

static inline int32x4_t vcvtnq_s32_f32(float32x4_t v) { return vcvtq_s32_f32(vrndnq_f32(v)); }

static inline uint8x16_t vzip1q_u8(uint8x16_t a, uint8x16_t b) { return vzipq_u8(a, b).val[0]; }
static inline uint8x16_t vzip2q_u8(uint8x16_t a, uint8x16_t b) { return vzipq_u8(a, b).val[1]; }
static inline uint16x8_t vzip1q_u16(uint16x8_t a, uint16x8_t b) { return vzipq_u16(a, b).val[0]; }
static inline uint16x8_t vzip2q_u16(uint16x8_t a, uint16x8_t b) { return vzipq_u16(a, b).val[1]; }

static inline int32x4_t vmull_high_s16(int16x8_t a, int16x8_t b) {
  return vmull_s16(vget_high_s16(a), vget_high_s16(b));
}
static inline int32x4_t vmlal_high_s16(int32x4_t sum, int16x8_t a, int16x8_t b) {
  return vmlal_s16(sum, vget_high_s16(a), vget_high_s16(b));
}
static inline int32x4_t vpaddq_s32(int32x4_t a, int32x4_t b) {
  return vcombine_s32(vpadd_s32(vget_low_s32(a), vget_high_s32(a)),
                      vpadd_s32(vget_low_s32(b), vget_high_s32(b)));
}

#else

static inline float32x4_t vfmaq_f32_or_two(float32x4_t c, float32x4_t a, float32x4_t b) {
  return vfmaq_f32(c, a, b);
}

#endif
