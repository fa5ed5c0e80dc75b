// Where the samples of a resized axis come from, for Resize kernels.
#pragma once

#include "lite_kernel.h"

namespace lite {

// One axis: output position i is the sum over t of weight[i * taps + t] * input[index[i * taps +
// t]].
struct Resample {
  int64_t in, out;
  int taps;
  int32_t* index;  // clamped to the input
  float* weight;
};

// Reads the attributes of an ONNX Resize step and makes the tables of physical axis `axis`. Fails
// for what is not implemented (crop-and-resize, aspect-ratio policies).
bool plan_resample(const Step&, Env&, const Tensor& x, const Tensor& y, int axis, Resample*);

}  // namespace lite
