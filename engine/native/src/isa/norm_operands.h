// What every normalisation checks of its operands.
#pragma once

#include "lite_kernel.h"

namespace lite::LITE_ISA {
namespace {

// With `or_short` the output may be bf16.
bool float_in_out(const Step& step, Env& env, bool or_short = false) {
  const Tensor* x = input_of(step, 0);
  const Tensor* y = output_of(step, 0);
  const bool fits = y && (y->dtype == DType::kF32 || (or_short && y->dtype == DType::kBF16));
  if (!x || !fits || x->dtype != DType::kF32 || !same_dims(*x, *y) || x->rank < 1 ||
      step.num_outputs != 1)
    return env.fail("needs one f32 input and one f32 output of its shape");
  return true;
}

// A dense float operand of exactly `size` elements.
bool is_vector(const Tensor* t, int64_t size) {
  return t && t->dtype == DType::kF32 && t->size == size && is_dense(*t);
}

}  // namespace
}  // namespace lite::LITE_ISA
