// QLinearAdd, QLinearSub and QLinearMul with rounding="litert", as XNNPACK's kernels compute them:
//
//   sums      y = clamp(((bias + a_factor * a + b_factor * b) >> shift) + y_zero), factors of 21 bits
//   products  y = clamp(round_half_even(float((a - a_zero) * (b - b_zero)) * scale) + y_zero)
//
// ops/litert.py has the same formulas.
#pragma once

#include <cmath>

#include "ops/broadcast.h"
#include "ops/quant_scalars.h"
#include "int8_tile.h"

namespace lite::LITE_ISA {

struct LitertBinary {
  int32_t a, b, bias, shift;  // factors of a sum, and what is added; of a product the zero points
  float scale;                // of a product
  int32_t y_zero;             // more by 128 for i8
  uint8_t flip;
  bool multiply;
};

// Inputs as QLinearAdd has them, of one 8-bit type.
inline bool prepare_litert(const Step& step, Env& env, LitertBinary* s) {
  const DType type = step.outputs[0]->dtype;
  QuantScalars a, b, y;
  if (type != DType::kI8 && type != DType::kU8) return env.fail("rounding litert needs bytes");
  if (!read_scalars(step, env, 1, type, &a) || !read_scalars(step, env, 4, type, &b) ||
      !read_scalars(step, env, 6, type, &y))
    return false;
  s->flip = type == DType::kI8 ? 0x80 : 0;
  s->y_zero = y.zero + s->flip;
  s->multiply = strcmp(step.op, "QLinearMul") == 0;
  if (s->multiply) {
    const float product = a.scale * b.scale;
    s->scale = product / y.scale;
    s->a = a.zero, s->b = b.zero;
    return s->scale < 16384.0f || env.fail("the scales are too far apart for rounding litert");
  }
  const float ratios[2] = {a.scale / y.scale, b.scale / y.scale};
  for (float r : ratios)
    if (!(r >= 0x1p-10f && r < 0x1p8f))
      return env.fail("the scales are too far apart for rounding litert");
  s->shift = 20 - std::ilogb(ratios[0] > ratios[1] ? ratios[0] : ratios[1]);
  s->a = static_cast<int32_t>(std::nearbyint(std::ldexp(ratios[0], s->shift)));
  s->b = static_cast<int32_t>(std::nearbyint(std::ldexp(ratios[1], s->shift)));
  if (strcmp(step.op, "QLinearSub") == 0) s->b = -s->b;
  s->bias = (1 << (s->shift - 1)) - s->a * a.zero - s->b * b.zero;
  return true;
}

template <bool kSigned>
LITE_INLINE B combine_litert(const LitertBinary& s, const uint8_t* pa, const uint8_t* pb) {
  I v[4];
  LITE_UNROLL for (int q = 0; q < 4; ++q) {
    const I a = widen<kSigned>(pa + q * kLanes), b = widen<kSigned>(pb + q * kLanes);
    v[q] = s.multiply ? to_int(to_float((a - s.a) * (b - s.b)) * splat(s.scale))
                      : (a * s.a + b * s.b + s.bias) >> s.shift;
  }
  return narrow(v[0], v[1], v[2], v[3], s.y_zero) ^ splat_byte(s.flip);
}

template <bool kSigned>
void run_litert(const LitertBinary& s, const Broadcast& plan, const Step& step, int thread,
                int threads) {
  constexpr int kStep = 4 * kLanes;
  const Tensor* operands[2] = {step.inputs[0], step.inputs[3]};
  uint8_t* y = step.outputs[0]->data;
  const int last = plan.rank - 1;
  uint8_t parts[2][kStep] = {};
  BroadcastWalk walk;
  for (start_walk(plan, thread, threads, &walk); next_piece(&walk);)
    for (int64_t i = 0; i < walk.length; i += kStep) {
      const int n = static_cast<int>(walk.length - i < kStep ? walk.length - i : kStep);
      const uint8_t* from[2];
      for (int k = 0; k < 2; ++k) {
        const int64_t stride = plan.stride[k + 1][last];
        from[k] = operands[k]->data + walk.at[k + 1] + i * stride;
        if (stride == 1 && n == kStep) continue;
        if (stride == 1) memcpy(parts[k], from[k], static_cast<size_t>(n));
        else if (stride == 0) memset(parts[k], *from[k], static_cast<size_t>(n));
        else for (int j = 0; j < n; ++j) parts[k][j] = from[k][j * stride];
        from[k] = parts[k];
      }
      const B bytes = combine_litert<kSigned>(s, from[0], from[1]);
      if (n < kStep) store_bytes(y + walk.at[0] + i, bytes, n);
      else store_bytes(y + walk.at[0] + i, bytes);
    }
}

}  // namespace lite::LITE_ISA
