// The scale and zero point of a whole tensor, given as two inputs.
#pragma once

#include "lite_kernel.h"

namespace lite {

struct QuantScalars {
  float scale;
  int32_t zero;
};

// Inputs `at` (f32 scale) and `at` + 1 (zero point of `type`, an 8-bit type or i16; absent: 0). Both must
// be constants.
bool read_scalars(const Step&, Env&, int at, DType type, QuantScalars*);

// clamp(round_half_even(real / scale) + zero) to the type, which has 8 bits, in double; NaN gives the lowest number.
int32_t quantise_exactly(double real, const QuantScalars&, DType type);

}  // namespace lite
