// What float kernels must know of a Gemm, read and checked once.
#pragma once

#include "lite_kernel.h"

namespace lite {

// y[M,N] = activation(alpha * a[M,K] * b + beta * c + residual), b constant: [N,K] (transB) or [K,N].
struct GemmShape {
  const Tensor *a, *b, *c, *residual, *y;  // c or nullptr, residual[M,N] or nullptr
  int64_t m, n, k;
  bool trans_b;
  float alpha, beta;
};

// a and y are each of the type `real` or `other`, the residual and a computed c of `real`, constants of f32.
bool read_gemm_shape(const Step&, Env&, DType real, DType other, GemmShape*);

}  // namespace lite
