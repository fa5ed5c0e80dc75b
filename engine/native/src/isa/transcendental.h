// Vector exp, log, tanh, sigmoid, erf and what is made of them. Relative error near 1e-7 to 5e-7,
// NaN in gives NaN out, infinities give the limits.
//
// Coefficients are own fits (iteratively reweighted Chebyshev least squares, weighted for the
// relative error of the result); the fit's error is below 3e-8 everywhere.
#pragma once

#include "vec.h"

namespace lite::LITE_ISA {

LITE_INLINE F horner(F, float last) { return splat(last); }
template <class... Rest>
LITE_INLINE F horner(F x, float first, Rest... rest) {
  return fma(horner(x, rest...), x, splat(first));
}

// 2^n for n in [-126, 127]
LITE_INLINE F power_of_two(I n) { return as_float((n + 127) << 23); }

// v * 2^n for whole n of some hundreds: results down to the denormals, inf above.
LITE_INLINE F scale_by_power(F v, F n) {
#if defined(__AVX512F__)
  return reinterpret_cast<F>(
      _mm512_scalef_ps(reinterpret_cast<__m512>(v), reinterpret_cast<__m512>(n)));
#else
  const I whole = to_int(n), half = whole >> 1;
  return v * power_of_two(half) * power_of_two(whole - half);
#endif
}

// e^x = 2^n e^r, |r| <= ln 2 / 2; x <= 90
LITE_INLINE F exp_up_to_90(F x) {
  const F clamped = max(splat(-110.0f), x);
  const F n = round(clamped * splat(1.44269504f));
  F r = fma(n, splat(-0.693359375f), clamped);
  r = fma(n, splat(2.12194440e-4f), r);
  const F p = horner(r, 5.000000095e-01f, 1.666651890e-01f, 4.166620601e-02f, 8.368882434e-03f,
                     1.395047681e-03f);
  return scale_by_power(fma(r * r, p, r) + splat(1.0f), n);
}
LITE_INLINE F exp(F x) { return exp_up_to_90(min(splat(90.0f), x)); }

// ln x = e ln 2 + ln m, m in [sqrt 1/2, sqrt 2)
LITE_INLINE F log(F x) {
  const I tiny = x < splat(1.17549435e-38f);
  const F scaled = select(tiny, x * splat(8388608.0f), x);
  // Subtracting the bits of sqrt 1/2 makes the exponent field round to the nearest power of two.
  const I bits = (as_int(scaled) & 0x7fffffff) - 0x3f3504f3;  // a sign makes NaN below
  const F exponent = to_float(bits >> 23) - select(tiny, splat(23.0f), splat(0.0f));
  const F f = as_float((bits & 0x007fffff) + 0x3f3504f3) - splat(1.0f);
  const F p = horner(f, 3.333331044e-01f, -2.499998662e-01f, 2.000222670e-01f, -1.666924958e-01f,
                     1.421865565e-01f, -1.238436846e-01f, 1.187301293e-01f, -1.178970503e-01f,
                     6.915165534e-02f);
  const F square = f * f;
  F y = fma(square * f, p, exponent * splat(-2.12194440e-4f));
  y = fma(square, splat(-0.5f), y) + f;
  y = fma(exponent, splat(0.693359375f), y);
  const F infinity = splat(__builtin_inff());
  y = select(x == infinity, infinity, y);
  y = select(x == splat(0.0f), -infinity, y);
  return select(x >= splat(0.0f), y, splat(__builtin_nanf("")));
}

// ln(1 + x), x >= 0: the rounding error of 1 + x is put back.
LITE_INLINE F log1p_positive(F x) {
  const F u = splat(1.0f) + x;
  return log(u) + (x - (u - splat(1.0f))) / u;
}

// e^x - 1 for x <= 0. Near 0 by series: the difference would cancel.
LITE_INLINE F expm1_negative(F x) {
  const F p = horner(x, 5.000000095e-01f, 1.666651890e-01f, 4.166620601e-02f, 8.368882434e-03f,
                     1.395047681e-03f);
  return select(x > splat(-0.34f), fma(x * x, p, x), exp(x) - splat(1.0f));
}

// e^x, or with kSign -1 e^-x, is their product; its exponent of 2 lies from -127 (`power` is 0) to 128 (infinity).
struct ExpFactors {
  F fraction, power;
};
template <int kSign>
LITE_INLINE ExpFactors exp_factors(F x) {
  // Added to a number of moderate size, it rounds it; the last bits are then n + 127.
  const F shift = splat(12582912.0f + 127);
  const F shifted = fma(x, splat(kSign * 1.44269504f), shift), n = shifted - shift;
  F r = fma(n, splat(kSign * -0.693359375f), x);  // e^x = 2^n e^r, e^-x = 2^n e^-r
  r = fma(n, splat(kSign * 2.12194440e-4f), r);
  // In pairs, which take no turns and, of two operands and a sum in place, fewer copies of constants.
  const F square = r * r, one = splat(1.0f);
  const F high = fma(square, splat(1.395047681e-03f), fma(r, splat(kSign * 8.368882434e-03f),
                                                          splat(4.166620601e-02f)));
  const F p = fma(square, high, fma(r, splat(kSign * 1.666651890e-01f), splat(5.000000095e-01f)));
  return {fma(square, p, kSign > 0 ? one + r : one - r), as_float(as_int(shifted) << 23)};
}

// e^x, x <= 88; below -87.7 it is 0, the least numbers are left out.
LITE_INLINE F exp_or_zero(F x) {
  const ExpFactors e = exp_factors<1>(max(splat(-88.1f), x));
  return e.fraction * e.power;
}

// 1 + e^-x, up to infinity below -88.4.
LITE_INLINE F one_and_exp(F x) {
  const ExpFactors e = exp_factors<-1>(max(splat(-89.0f), min(splat(87.0f), x)));
  return fma(e.fraction, e.power, splat(1.0f));
}

// Below -88.4 it is 0, the least denormals are left out.
LITE_INLINE F sigmoid(F x) { return splat(1.0f) / one_and_exp(x); }
LITE_INLINE F silu(F x) { return x / one_and_exp(x); }

LITE_INLINE F copy_sign(F magnitude, F sign) {
  return as_float(as_int(magnitude) | (as_int(sign) & static_cast<int32_t>(0x80000000)));
}

LITE_INLINE F tanh(F x) {
  const F z = x * x;
  const F p = horner(z, -3.333326288e-01f, 1.333089971e-01f, -5.369296452e-02f, 2.048330652e-02f,
                     -5.528624594e-03f);
  const F near = fma(x * z, p, x);
  const F far = splat(1.0f) - splat(2.0f) / (exp(splat(2.0f) * abs(x)) + splat(1.0f));
  return select(abs(x) < splat(0.65f), near, copy_sign(far, x));
}

// x P(x^2) / Q(x^2) up to 4, where it is 1 to the last bit, with and without fused sums.
LITE_INLINE F erf(F x) {
  const F t = max(splat(-4.0f), min(splat(4.0f), x)), z = t * t;
  const F p = horner(z, 1.128379139e+00f, 1.935457768e-01f, 5.310183859e-02f, 3.883374314e-03f,
                     2.845665814e-04f, 1.986777019e-06f);
  const F q = horner(z, 1.0f, 5.048580342e-01f, 1.153502941e-01f, 1.520731153e-02f,
                     1.185578499e-03f, 3.742015469e-05f);
  return max(splat(-1.0f), min(splat(1.0f), t * p / q));
}

LITE_INLINE F softplus(F x) { return max(splat(0.0f), x) + log1p_positive(exp(-abs(x))); }

// x tanh(ln(1 + e^x)) = x n / (n + 2), n = e^x (e^x + 2)
LITE_INLINE F mish(F x) {
  const F e = exp(min(splat(30.0f), x));
  const F n = e * (e + splat(2.0f));
  return x * (n / (n + splat(2.0f)));
}

LITE_INLINE F gelu(F x) {
  const F half = splat(0.5f) * x;
  return fma(half, erf(x * splat(0.70710678f)), half);
}

// The form with tanh(sqrt(2/pi) (x + 0.044715 x^3)): 0.5 (1 + tanh u) is sigmoid(2u).
LITE_INLINE F gelu_tanh(F x) {
  const F u = x * fma(x * x, splat(0.07135481f), splat(1.59576912f));
  return x / one_and_exp(u);
}

}  // namespace lite::LITE_ISA
