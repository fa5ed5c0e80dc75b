// What integer kernels add to their scaled sums before they round: the residual of quant_params.h.
#pragma once

#include "int8_lanes.h"
#include "quant_params.h"

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

}  // namespace lite::LITE_ISA
