// The fused activation, one definition for all kernels: see Activation in lite_kernel.h.
#pragma once

#include "lite_kernel.h"
#if defined(LITE_FP16)
#include "vec.h"
#else
#include "transcendental.h"
#endif

namespace lite::LITE_ISA {

template <Act A>
LITE_INLINE F activate_vector(F x, F a, F b) {
  const F zero = splat(0.0f), one = splat(1.0f);
  switch (A) {
    case Act::kNone: return x;
    case Act::kClip: return min(b, max(a, x));
    case Act::kLeakyRelu: return select(x < zero, a * x, x);
    case Act::kHardSigmoid: return min(one, max(zero, fma(a, x, b)));
    case Act::kHardSwish: return x * min(one, max(zero, fma(x, splat(1.0f / 6), splat(0.5f))));
#if defined(LITE_FP16)
    default: break;  // in floats only: activate
#else
    case Act::kSigmoid: return sigmoid(x);
    case Act::kSilu: return silu(x);
    case Act::kSwish: return x / one_and_exp(a * x);
    case Act::kTanh: return tanh(x);
    case Act::kGelu: return gelu(x);
    case Act::kGeluTanh: return gelu_tanh(x);
    case Act::kElu: return select(x < zero, a * expm1_negative(x), x);
    case Act::kSelu: return b * select(x < zero, a * expm1_negative(x), x);
    case Act::kSoftplus: return softplus(x);
    case Act::kSoftsign: return x / (one + abs(x));
    case Act::kMish: return mish(x);
    case Act::kExp: return exp(x);
    case Act::kErf: return erf(x);
#endif
  }
  return x;
}

// The slope of a leaky ReLU that is the larger one of x and slope x; of other activations 1.
inline float slope_of(const Activation& activation) {
  const float slope = activation.a;
  return activation.act == Act::kLeakyRelu && slope > 0 && slope < 1 ? slope : 1.0f;
}

// In place on n numbers that are still in the cache.
void activate(Real* x, int64_t n, const Activation& activation);

// In place on n numbers of each of `rows`, `stride` numbers apart.
void activate_rows(Real* x, int64_t rows, ptrdiff_t stride, int64_t n, const Activation& activation);

// y = activation(x), n numbers; x and y may be the same.
void activate(const Real* x, Real* y, int64_t n, const Activation& activation);

}  // namespace lite::LITE_ISA
