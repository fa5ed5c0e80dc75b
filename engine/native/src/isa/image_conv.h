// The first convolution of a network: three channels that lie together, so that a row of taps is a short run,
// and the runs of neighbouring output pixels overlap.
//
// Nothing is packed: a register tile holds the numbers that kImagePixels outputs see of one row, and each of
// them meets the weights as an element of its vector.
#pragma once

#include "ops/conv_strips.h"
#include "packed_tile.h"

namespace lite::LITE_ISA {

constexpr int kImagePixels = 7, kImageChannels = 3;
constexpr int kImageTaps = 3, kWideTaps = 7;  // in a row

struct ImageConv {
  ConvShape shape;
  const Real* weights;              // [panel][taps][columns]
  const Real* bias;                 // [panels * kTileColumns]
  int64_t panel_elems;
  int64_t tiles;                    // of an output row; the last one steps back
  size_t scratch_bytes;             // per thread
};

LITE_INLINE bool is_image_conv(const ConvShape& s) {
  return kPacks && s.groups == 1 && s.group_in == kImageChannels && s.in.pixel == kImageChannels &&
         s.dilation[1] == 1 &&
         (s.kernel[1] == kImageTaps ? s.stride[1] == 1 || s.stride[1] == 2
                                    : s.kernel[1] == kWideTaps && s.stride[1] == 2) &&
         s.out.w >= kImagePixels && !s.has_residual;
}

// Everything but weights and bias.
bool prepare_image_conv(const ConvShape&, Env&, ImageConv*);
// Output rows of all images, and panels.
void run_image_conv(const ImageConv&, const float* x, float* y, const GridPart&, void* scratch);

}  // namespace lite::LITE_ISA
