// Fixed point as LiteRT's own kernels compute in it (gemmlowp's): a sum of integers times a fraction of
// 31 bits, rounded, and a power of two, rounded again, ties away from 0 both times.
// ops/litert_functions.py has the same formulas (rescaled_twice).
#pragma once

#include <math.h>
#include <stdint.h>

#include "lite_kernel.h"

namespace lite {

// whole / 2^31 * 2^exponent
struct Fraction {
  int32_t whole, exponent;
};

LITE_INLINE Fraction fraction_of(double real) {
  int exponent;
  int64_t whole = static_cast<int64_t>(floor(ldexp(frexp(real, &exponent), 31) + 0.5));
  if (whole == int64_t{1} << 31) whole /= 2, ++exponent;
  if (exponent < -31) return {0, 0};
  return {static_cast<int32_t>(whole), exponent < 31 ? exponent : 31};
}

LITE_INLINE int32_t rescale(int32_t x, Fraction f) {
  constexpr int64_t kMost = INT32_MAX;
  int64_t wide = int64_t{x} * (int64_t{1} << (f.exponent > 0 ? f.exponent : 0));
  wide = wide > kMost ? kMost : wide < -kMost - 1 ? -kMost - 1 : wide;
  const int64_t product = wide * f.whole;
  const int64_t nudged = product + (product >= 0 ? int64_t{1} << 30 : 1 - (int64_t{1} << 30));
  int64_t high = nudged / (int64_t{1} << 31);
  high = high > kMost ? kMost : high;
  if (f.exponent >= 0) return static_cast<int32_t>(high);
  const int64_t mask = (int64_t{1} << -f.exponent) - 1, rest = high & mask;
  return static_cast<int32_t>((high >> -f.exponent) + (rest > (mask >> 1) + (high < 0)));
}

}  // namespace lite
