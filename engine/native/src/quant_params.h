// Scales and zero points of an integer step, and the requantisation that all kernels share:
//
//   y = clamp(round_half_even(float(acc) * scale[c]) + y_zero_point)
//   scale[c] = float(float(x_scale * w_scale[c]) / y_scale)         all in float32
//
// with acc = sum (x - x_zero_point) * w + bias exact in int32.
#pragma once

#include "lite_kernel.h"

namespace lite {

struct QuantParams {
  bool x_signed, w_unsigned, y_signed;   // element types: i8 or u8
  int32_t x_zero, y_zero;
  int32_t low, high;                     // range of y, narrowed by a fused activation
  float* scale;                          // per output channel
};

// Reads attributes x_scale, x_zero_point, w_scale (one or per channel), w_zero_point, y_scale,
// y_zero_point (a_..., b_... for matrix products). Weights must be symmetric: zero point 0 (i8) or
// 128 (u8). A fused activation must be a clamp.
// `depth`: products per output; with the bias (or nullptr) it bounds what a sum can be.
bool read_quant_params(const Step&, Env&, const Tensor& x, const Tensor& w, const Tensor& y,
                       const Tensor* bias, const char* x_name, const char* w_name,
                       int64_t channels, int64_t depth, QuantParams*);

// Weight as the signed number it stands for.
LITE_INLINE int32_t signed_weight(const Tensor& w, bool is_unsigned, int64_t i) {
  const uint8_t v = w.data[i];
  return is_unsigned ? static_cast<int32_t>(v) - 128 : static_cast<int32_t>(static_cast<int8_t>(v));
}

}  // namespace lite
