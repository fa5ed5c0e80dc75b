// What every convolution kernel must know of its step, read and checked once.
#pragma once

#include "lite_kernel.h"

namespace lite {

// A channels-last tensor as images x rows x pixels, in elements. A rank-3 tensor is one row, one of rank 5
// has frames (n, depth) in place of images.
struct PixelView {
  int64_t images, h, w, c;
  int64_t image, row, pixel;       // strides
  int64_t origin;                  // element of (0,0,0,0)
  int32_t halo[4];                 // top, left, bottom, right
};

struct ConvShape {
  PixelView in, out, residual;
  bool has_residual;
  int64_t groups, group_in, group_out;   // channels per group
  int64_t kernel[2], stride[2], dilation[2];   // h, w
  int64_t pad[2];                        // top, left (already covers auto-padded steps)
  int64_t output_padding[2];             // transposed only
  const Tensor* weights;
  const Tensor* bias;                    // or nullptr
  const Tensor* residual_tensor;
  Activation activation;
};

struct ConvOperands {
  const Tensor* x;
  const Tensor* w;          // (O, I/group, kh, kw); transposed: (I, O/group, kh, kw)
  const Tensor* b;          // or nullptr
  const Tensor* residual;   // or nullptr
  const Tensor* y;
};

// Checks ranks, dims and attributes (not data types); the output dims must be the ones that the
// attributes give. Weights and bias must be constant.
bool read_conv_shape(const Step&, Env&, const ConvOperands&, bool transposed, ConvShape*);

// The same for a float step with inputs x, w, b, residual; also its data types (weights and bias are
// f32, the others `values`) and its activation.
bool read_conv(const Step&, Env&, bool transposed, ConvShape*, DType values = DType::kF32);

bool pixel_view(const Tensor&, PixelView*);

LITE_INLINE RowMap row_map(const ConvShape& s, int64_t grain) {
  return {s.stride[0], s.pad[0], (s.kernel[0] - 1) * s.dilation[0] + 1, grain};
}

// Groups so narrow that they would leave most lanes idle are packed together, block-diagonally.
LITE_INLINE int64_t groups_to_join(const ConvShape& s, int lanes) {
  int64_t join = 1;
  for (int64_t f = 2; f <= s.groups && f * s.group_out <= lanes; ++f)
    if (s.groups % f == 0) join = f;
  return join;
}

// Taps [begin, end) of `taps` that fall inside [low, high) when tap 0 is at `first`.
LITE_INLINE void tap_window(int64_t first, int64_t dilation, int64_t taps, int64_t low,
                            int64_t high, int64_t* begin, int64_t* end) {
  int64_t b = first >= low ? 0 : (low - first + dilation - 1) / dilation;
  int64_t e = first >= high ? 0 : (high - first + dilation - 1) / dilation;
  if (e > taps) e = taps;
  if (b > e) b = e;
  *begin = b;
  *end = e;
}

}  // namespace lite
