// Constants of launches, made of weights as backends/opencl/constants.py makes them, with the same
// bits.
#pragma once

#include "device_plan.h"

namespace lite::opencl {

struct Array {
  DType dtype;
  int rank;
  uint64_t dims[kMaxRank];
  uint8_t* data;  // malloc's
  size_t bytes;
};

// Applies the constant's operations to a weight; at most `limit` bytes at a time (0: none). The
// caller frees out->data. False with a reason in env.error.
bool evaluate(const Constant&, const void* weight, size_t weight_bytes, size_t limit, Env&,
              Array* out);

}  // namespace lite::opencl
