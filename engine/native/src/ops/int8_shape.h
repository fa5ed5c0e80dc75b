// QLinearConv, QLinearConvTranspose, QLinearMatMul and QGemm as one thing: convolutions with constant
// integer weights.
//
// Inputs keep ONNX's positions (x 0, w 3, bias 8; a 0, b 3; QGemm: bias 6), and 9 is our own
// residual; the scales and zero points between them are attributes.
#pragma once

#include "deconv_parts.h"
#include "quant_params.h"

namespace lite {

// Order of the weights: element (group, out, in, y, x) lies at origin + the sum of index * stride;
// values come from centred_weight().
struct IntWeightView {
  const Tensor* tensor;
  int64_t group, out, in, y, x;
  int64_t origin = 0;
};

// What `maker` packs from such weights, which have no zero points.
LITE_INLINE Recipe recipe_of(const char* maker, const ConvShape& s, const IntWeightView& v, const QuantParams& q) {
  return {maker,
          v.tensor->data,
          v.tensor->bytes,
          {s.groups, s.group_in, s.group_out, s.kernel[0], s.kernel[1], v.group, v.out, v.in, v.y, v.x, v.origin,
           q.w_unsigned}};
}

struct IntShape {
  ConvShape conv;                 // a matrix is a row of pixels under a 1x1 kernel
  bool transposed;                // run its parts, one for each remainder of the stride
  IntWeightView w;
  const Tensor* x;
  const Tensor* y;
  const Tensor* b;                // bias or nullptr
  const char* x_name;             // prefix of the attributes of x and w
  const char* w_name;
  const int32_t* bias;            // or nullptr
};

// Checks dims and attributes, not data types.
bool read_int_shape(const Step&, Env&, IntShape*);
// Ordinary convolutions that make it up: itself, or deconv_part()s.
int64_t count_int_parts(const IntShape&, Env&);
bool int_part(const IntShape&, int64_t index, ConvShape*, IntWeightView*);
// Scales and zero points, the residual's too.
bool read_int_params(const Step&, Env&, const IntShape&, QuantParams*);

}  // namespace lite
