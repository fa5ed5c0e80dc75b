// Scales and zero points of an integer step, and the requantisation that all kernels share:
//
//   y = clamp(round_half_even(float(acc) * scale[c]) + y_zero_point)
//   scale[c] = float(float(x_scale * w_scale[c]) / y_scale)         all in float32
//
// with acc = sum (x - x_zero_point) * (w - w_zero_point[c]) + bias exact in int32.
//
// A residual adds float(r - zero) * float(residual_scale / y_scale) before the rounding; products
// and sum are rounded one by one. With a sum_scale what it is added to are integers of the type of y:
//
//   s = clamp(round_half_even(float(acc) * scale[c]) + sum_zero_point),    scale[c] = ... / sum_scale
//   y = clamp(round_half_even(float(s - sum_zero_point) * float(sum_scale / y_scale)
//                             + float(r - zero) * float(residual_scale / y_scale)) + y_zero_point)
#pragma once

#include "lite_kernel.h"

namespace lite {

struct Residual {
  int32_t input;                         // of the step; -1: none
  int32_t zero;
  float scale;                           // over that of y
  bool is_signed;
  bool rounded;                          // the sums are rounded and clamped before it is added
  float sum_low, sum_high;               // of s - sum_zero_point
  float sum_scale;                       // over that of y
};

struct QuantParams {
  bool x_signed, w_unsigned, y_signed;   // element types: i8 or u8
  int32_t x_zero, y_zero;
  int32_t low, high;                     // range of y, narrowed by a fused activation
  int32_t* w_zero;                       // per output channel, as a signed byte; or nullptr: all 0
  float* scale;                          // per output channel
  double most;                           // bound of a scaled sum, at most INT32_MAX
  Residual residual;
};

// Reads attributes x_scale, x_zero_point, w_scale (one or per channel), w_zero_point, y_scale,
// y_zero_point (a_..., b_... for matrix products); those of the weights are one or per channel.
// A fused activation must be a clamp.
// `depth`: products per output; with the bias (or nullptr) it bounds what a sum can be.
bool read_quant_params(const Step&, Env&, const Tensor& x, const Tensor& w, const Tensor& y,
                       const Tensor* bias, const char* x_name, const char* w_name,
                       int64_t channels, int64_t depth, QuantParams*);

// Whether the weights are i8 without zero points. `name` as w_name above.
bool weights_are_centred(const Step&, const Tensor& w, const char* name);

// The residual at that input of a step, if it is there: attributes residual_scale and _zero_point,
// sum_scale and _zero_point. After read_quant_params.
bool read_residual(const Step&, Env&, int input, QuantParams*);

// Element i of the weights, which belongs to an output channel, minus its zero point: -255 ... 255.
LITE_INLINE int32_t centred_weight(const QuantParams& q, const Tensor& w, int64_t channel,
                                   int64_t i) {
  const int32_t v = static_cast<int8_t>(w.data[i] ^ (q.w_unsigned ? 0x80 : 0));
  return q.w_zero ? v - q.w_zero[channel] : v;
}

}  // namespace lite
