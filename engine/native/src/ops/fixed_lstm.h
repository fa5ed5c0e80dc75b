// Functions of numbers of 16 bits as LiteRT's integer LSTM computes them (gemmlowp's fixed point).
// ops/litert_lstm.py has the same formulas and says what they are.
#pragma once

#include "ops/fixed_point.h"

namespace lite {

LITE_INLINE int32_t to_16(int32_t v) { return v < INT16_MIN ? INT16_MIN : v > INT16_MAX ? INT16_MAX : v; }
LITE_INLINE int32_t wrap_16(int32_t v) { return static_cast<int16_t>(static_cast<uint16_t>(v)); }

// x / 2^shift, ties away from 0.
LITE_INLINE int32_t halved(int32_t x, int shift) {
  const int32_t mask = static_cast<int32_t>((int64_t{1} << shift) - 1), rest = x & mask;
  return (x >> shift) + (rest > (mask >> 1) + (x < 0));
}

// 2 * a * b / 2^16, rounded.
LITE_INLINE int32_t product_16(int32_t a, int32_t b) {
  const int32_t product = a * b;
  const int32_t y = (product + (product >= 0 ? 1 << 14 : 1 - (1 << 14))) / (1 << 15);
  return y > INT16_MAX ? INT16_MAX : y;
}

constexpr int32_t upper_half(int32_t of_32) {
  return static_cast<int32_t>((int64_t{of_32} + (1 << 15)) >> 16);
}

// e^a of a <= 0 with `whole` bits before the point, in steps of 2^-15.
LITE_INLINE int32_t exp_16(int32_t a, int whole) {
  const int32_t bits = 15 - whole, quarter = 1 << (bits - 2), part = (a & (quarter - 1)) - quarter;
  const int32_t x = to_16(part * (1 << whole)) + (1 << 12), x2 = product_16(x, x);
  const int32_t x3 = product_16(x2, x), x4 = product_16(x2, x2);
  const int32_t third = product_16(halved(x4, 2) + x3, upper_half(715827883));
  const int32_t series = wrap_16(x + halved(third + x2, 1)), start = upper_half(1895147668);
  int32_t y = to_16(start + product_16(series, start));
  static const int32_t kPowers[7] = {
      upper_half(1672461947), upper_half(1302514674), upper_half(790015084), upper_half(290630308),
      upper_half(39332535),   upper_half(720401),     upper_half(242)};
  for (int power = -2; power < 5 && power < whole; ++power)
    if ((part - a) & (1 << (bits + power))) y = product_16(y, kPowers[power + 2]);
  if (whole > 5 && a < -(1 << (bits + 5))) y = 0;
  return a == 0 ? INT16_MAX : y;
}

// 2 / (1 + a) of a in 0 ... 1, with two bits before the point.
LITE_INLINE int32_t inverse_16(int32_t a) {
  const int32_t half = (a + INT16_MAX + 1) >> 1;
  int32_t x = wrap_16(upper_half(1515870810) + product_16(half, upper_half(-1010580540)));
  for (int i = 0; i < 3; ++i) {
    const int32_t rest = (1 << 13) - product_16(half, x);
    x = wrap_16(x + to_16(product_16(x, rest) * 4));
  }
  return x;
}

// Of a with `whole` bits before the point, in steps of 2^-15.
LITE_INLINE int32_t tanh_16(int32_t a, int whole) {
  if (a == 0) return 0;
  const int32_t x = inverse_16(exp_16(a < 0 ? a : -a, whole + 1));
  const int32_t y = to_16(wrap_16(x - (1 << 13)) * 4);
  return a < 0 ? -y : y;
}

// Of a with three bits before the point, in steps of 2^-15.
LITE_INLINE int32_t sigmoid_16(int32_t a) {
  if (a == 0) return 1 << 14;
  const int32_t y = to_16(inverse_16(exp_16(a < 0 ? a : -a, 3)) * 2);
  return a > 0 ? y : INT16_MAX - y;
}

LITE_INLINE int32_t high_32(int32_t a, int32_t b) {
  const int64_t product = int64_t{a} * b;
  const int64_t y = (product + (product >= 0 ? int64_t{1} << 30 : 1 - (int64_t{1} << 30))) /
                    (int64_t{1} << 31);
  return static_cast<int32_t>(y > INT32_MAX ? INT32_MAX : y);
}

LITE_INLINE int32_t to_32(int64_t v) {
  return static_cast<int32_t>(v < INT32_MIN ? INT32_MIN : v > INT32_MAX ? INT32_MAX : v);
}

// 1 / sqrt(x), by Newton's method.
LITE_INLINE Fraction inverse_root(int64_t x) {
  if (x <= 1) return {INT32_MAX, 0};
  int shift = 11;
  for (; x >= 1 << 29; x /= 4) ++shift;
  const int pairs = (__builtin_clz(static_cast<uint32_t>(x)) - 1) / 2 - 1;
  shift -= pairs;
  constexpr int32_t kOne = 1 << 28;
  const int32_t half = halved(static_cast<int32_t>((x << (2 * pairs)) >> 1), 1);
  int32_t y = kOne;
  for (int i = 0; i < 5; ++i) {
    const int32_t cube = to_32(int64_t{high_32(high_32(y, y), y)} * 64);
    y = to_32((int64_t{high_32(kOne + kOne / 2, y)} - high_32(half, cube)) * 8);
  }
  y = high_32(y, 1518500250);
  return shift < 0 ? Fraction{static_cast<int32_t>(int64_t{y} << -shift), 0} : Fraction{y, -shift};
}

}  // namespace lite
