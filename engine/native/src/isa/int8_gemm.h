// Integer convolution and matrix products over strips, panels and tap windows: see tap_gemm.h.
#pragma once

#include "ops/conv_strips.h"
#include "ops/int8_shape.h"
#include "int8_bounds.h"

namespace lite::LITE_ISA {

struct IntGemm {
  StripList list;
  PixelView input;                  // the tensor itself
  bool copied;                      // the GEMM reads Step::shared instead
  bool folded;                      // strips of two image rows, half a tile's pixels each
  Strip fold;                       // from one of them to the next: a, c and r
  int32_t border[4];                // pixels around the copy that hold the zero point, as PixelView::halo
  int64_t kernel_w, in_c, out_c;    // of one packed group; in_c of a row of taps where rows are joined
  int64_t row_channels;             // the channels of such a row's pixels, else 0
  int64_t depth_groups;             // groups of kDepth products per tap
  int64_t tap_x, tap_y;             // bytes
  bool joined_taps;
  int64_t groups, panels;
  int64_t panel_weights, group_weights;   // elements
  const IntWeight* weights;
  const uint8_t* bounds;            // [group][panel][bounds_bytes(depth of a panel)]
  const int32_t* bias;              // [window][group][panels * kTileColumns]
  const float* scale;               // [group][panels * kTileColumns]
  const int32_t* w_zero;            // the same; nullptr when the packed weights are centred
  QuantParams quant;
  int32_t block_tiles;
  ThreadGrid grid;
};

// Where the sums become floats: operands have a scale and a zero point for each unit of the output, an
// image or a pixel.
struct RealSums {
  const float* x_scale;             // per unit
  const int32_t* x_zero;            // per unit, as the products read it
  int64_t unit, origin;             // elements of the output per unit, and where the first one lies
  const float* bias;                // as IntGemm::scale
  const int32_t* none;              // kTileColumns zeros
  bool away;                        // the order of products, see dynamic_quantize.cc
  int64_t fours;                    // channels before the rest that makes no four
};

// Zero points that cannot be subtracted from the weights are multiplied with sums of the inputs,
// which joined groups do not share.
bool needs_row_sums(const IntShape&, const QuantParams&);

// Sets phases and shared memory of the step: phase 0 copies the input where that is needed, alike for
// all parts of a transposed convolution; one that is not in parts may get a border. With `copies` the GEMM
// reads a copy in any case.
bool prepare_int_gemm(ConvShape shape, const IntWeightView& weights, const int32_t* bias,
                      const QuantParams& quant, bool row_sums, bool in_parts, Step& step, Env& env,
                      IntGemm* gemm, bool copies = false);
// The copy of phase 0.
void copy_int_input(const IntGemm& gemm, const Step& step, const Tensor& x, int thread, int threads);
// With `real` the results are floats.
void run_int_gemm(const IntGemm& gemm, const Step& step, const Tensor& x, const Tensor& y,
                  int thread, const RealSums* real = nullptr);

// The form of a stored byte in which the dot products read it: as Operand, flipped or centred.
struct OperandForm {
  uint8_t flip;
  int32_t shift;        // subtracted after the flip
};
OperandForm operand_form(const QuantParams&);

// Copies a tensor: [image][row][pixel][group][channels, padded with zeros to `padded`]. A border of
// PixelView::halo pixels around each image, of `outside`, belongs to the copy.
void copy_operands(const PixelView& view, const uint8_t* x, OperandForm form, int64_t groups,
                   int64_t padded, const int32_t (&border)[4], Operand outside, Operand* out,
                   int thread, int threads);

}  // namespace lite::LITE_ISA
