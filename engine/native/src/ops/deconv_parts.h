// A transposed convolution as ordinary ones: the output pixels with the same remainder modulo the
// stride see the same subset of taps, so each remainder is a stride-1 convolution that writes every
// stride-th pixel. Nothing is scattered and nothing is multiplied by inserted zeros.
#pragma once

#include "conv_shape.h"

namespace lite {

struct DeconvPart {
  ConvShape shape;
  int64_t first_y, first_x;        // tap of the kernel that is the part's tap (0, 0)
  int64_t step_y, step_x;          // taps of the kernel from one of the part's to the next
};

// Number of remainders, some perhaps without outputs; 0 with an error when there are too many.
int64_t count_deconv_parts(const ConvShape& transposed, Env&);
// False when no output has that remainder. A part without taps has a 0x0 kernel.
bool deconv_part(const ConvShape& transposed, int64_t index, DeconvPart*);

}  // namespace lite
