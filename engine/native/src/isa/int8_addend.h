// What integer kernels add to their scaled sums before they round: the residual of quant_params.h.
#pragma once

#include "int8_lanes.h"
#include "ops/quant_params.h"

namespace lite::LITE_ISA {

struct Addend {
  int32_t zero;                     // of its bytes as unsigned numbers
  uint8_t flip;                     // 0x80 when they are signed
  float scale;                      // over that of y
  bool rounded;
  float sum_low, sum_high, sum_scale;
};

LITE_INLINE Addend addend_of(const Residual& r) {
  const uint8_t flip = r.is_signed ? 0x80 : 0;
  return {r.zero + flip, flip, r.scale, r.rounded, r.sum_low, r.sum_high, r.sum_scale};
}

// What the residual is added to: scaled sums, or the integers that they are rounded to.
enum Adding { kNothing, kToSums, kToIntegers };

// `bytes` of the residual, flipped.
template <Adding kAdding>
LITE_INLINE F add(const Addend& a, F sum, I bytes) {
  if (kAdding == kToIntegers) {
    const F low = splat(a.sum_low), high = splat(a.sum_high);
    sum = round(min(high, max(low, sum))) * a.sum_scale;
  }
  return rounded(sum) + rounded(to_float(bytes - a.zero) * a.scale);
}

#if defined(__AVX512F__)

// Whether the residual's bytes are signed, or their zero point is not 0.
LITE_INLINE bool is_shifted(const Addend& a) { return a.zero != 0 || a.flip != 0; }

// The same for many sums. Bytes become floats and floats whole numbers by the sum with 2^23: one
// operation where a conversion with its flip, or a rounding, would be two. kShifted:
// is_shifted().
template <Adding kAdding, bool kShifted>
struct Adder {
  F even, sum_low, sum_high, sum_scale, scale, zero;
  __m512i exponent, spread, flip;

  LITE_INLINE explicit Adder(const Addend& a) {
    even = splat(12582912.0f);  // 1.5 * 2^23: what is added to it is rounded to a whole number
    sum_low = splat(a.sum_low), sum_high = splat(a.sum_high), sum_scale = splat(a.sum_scale);
    scale = splat(a.scale);
    exponent = _mm512_set1_epi32(0x4b000000);  // of 2^23
    flip = _mm512_set1_epi32(a.flip);
    // Byte 4 q + i to lane i of the quarter q of a register.
    spread = (__m512i)(I{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15});
    // 2^23 and the zero point leave before the product, or 2^23 with it, whose product is exact.
    zero = splat(kShifted ? 8388608.0f + static_cast<float>(a.zero) : -8388608.0f * a.scale);
  }
  // `bytes` as they are in memory.
  LITE_INLINE F operator()(F sum, __m128i bytes) const {
    if (kAdding == kNothing) return sum;
    if (kAdding == kToIntegers) {
      sum = min(sum_high, max(sum_low, sum));
      sum = (sum + even - even) * sum_scale;
    }
    // Loads that copy to every quarter cost no more than others.
    const __m512i quarters = _mm512_broadcast_i32x4(bytes);
    __m512i bits = _mm512_mask_shuffle_epi8(exponent, 0x1111111111111111, quarters, spread);
    if (kShifted) bits = _mm512_xor_si512(bits, flip);
    const F whole = (F)bits;
    return rounded(sum) + rounded(kShifted ? (whole - zero) * scale : fma(whole, scale, zero));
  }
};

#endif

}  // namespace lite::LITE_ISA
