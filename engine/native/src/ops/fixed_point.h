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

LITE_INLINE int64_t shifted(int64_t x, int shift) {
  return shift > 0 ? (x + (int64_t{1} << (shift - 1))) >> shift : x;
}

// With activations of 16 bits (ops/litert16.py has the formulas; ties go up). Sums of 64 bits of a
// convolution, times a fraction of 15 bits:
LITE_INLINE int64_t rescale_wide(int64_t x, Fraction f) {
  const int64_t fine = f.whole < 0x7FFF0000 ? (int64_t{f.whole} + (1 << 15)) >> 16 : 0x7FFF;
  const int shift = 15 - f.exponent;
  return shifted(static_cast<int64_t>(static_cast<uint64_t>(x) * static_cast<uint64_t>(fine)),
                 shift < 0 ? 0 : shift > 62 ? 62 : shift);
}

// Those of a dense layer with a bias, times one of 31 bits: the product in two halves.
LITE_INLINE int64_t rescale_once(int64_t x, Fraction f) {
  const int wanted = 31 - f.exponent, shift = wanted < 1 ? 1 : wanted > 62 ? 62 : wanted;
  const int64_t high = (x >> 31) * f.whole;
  const int64_t low = (x & INT32_MAX) * f.whole + (int64_t{1} << (shift - 1));
  if (shift >= 31) return (high + (low >> 31)) >> (shift - 31);
  return static_cast<int64_t>(static_cast<uint64_t>(high) << (31 - shift)) + (low >> shift);
}

// Those of one without, of 32 bits: rounded behind the fraction and behind the power of two.
LITE_INLINE int64_t rescale_up(int64_t x, Fraction f) {
  constexpr int64_t kMost = INT32_MAX;
  int64_t wide = f.exponent > 0 ? x * (int64_t{1} << f.exponent) : x;
  wide = wide > kMost ? kMost : wide < -kMost - 1 ? -kMost - 1 : wide;
  return shifted(shifted(wide * f.whole, 31), f.exponent < 0 ? -f.exponent : 0);
}

LITE_INLINE int16_t to_int16(int64_t v) {
  return static_cast<int16_t>(v < INT16_MIN ? INT16_MIN : v > INT16_MAX ? INT16_MAX : v);
}

}  // namespace lite
