"""How LiteRT computes an LSTM in integers: numbers of 16 bits between, a fixed point at each.

A gate counts in steps of 2^-12 before its function and of 2^-15 behind it. Functions are
gemmlowp's: an exponential function from a series and a table of factors, a quotient by Newton's
method, everything in products of 16 bits.
"""

from __future__ import annotations

import numpy as np

from .litert_functions import _halved, _high_product, fraction, rescaled_by

Array = np.ndarray
_LOW, _HIGH = -(1 << 15), (1 << 15) - 1
#: e^-(2^k) in steps of 2^-31, k from −2
_POWERS = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)
#: Fractional bits of a normalized gate's mean, and of its square
_FINE, _SQUARE = 10, 20


def saturated(x: Array) -> Array:
    return np.clip(x, _LOW, _HIGH)


def _product(a: Array, b: Array | int) -> Array:
    """2·a·b / 2^16, rounded, of fixed points in 16 bits"""
    nudged = a * b
    nudged = nudged + np.where(nudged >= 0, 1 << 14, 1 - (1 << 14))
    return np.minimum(np.sign(nudged) * (np.abs(nudged) >> 15), _HIGH)


def _wrapped(x: Array) -> Array:
    """What 16 bits keep."""
    return ((x + (1 << 15)) & 0xFFFF) - (1 << 15)


def _constant(of_32: int) -> int:
    return of_32 + (1 << 15) >> 16


def _exp(a: Array, whole_bits: int) -> Array:
    """e^a of a ≤ 0 with `whole_bits` bits before the point, in steps of 2^-15"""
    bits = 15 - whole_bits
    quarter = 1 << bits - 2
    part = (a & quarter - 1) - quarter
    x = saturated(part << whole_bits) + (1 << 12)
    x2 = _product(x, x)
    x3, x4 = _product(x2, x), _product(x2, x2)
    third = _product(_halved(x4, 2) + x3, _constant(715827883))
    series = _wrapped(x + _halved(third + x2, 1))
    start = _constant(1895147668)
    result = saturated(start + _product(series, start))
    rest = part - a
    for exponent, factor in enumerate(_POWERS, -2):
        if whole_bits > exponent:
            has = rest & (1 << bits + exponent) != 0
            result = np.where(has, _product(result, _constant(factor)), result)
    if whole_bits > 5:
        result = np.where(a < -(1 << bits + 5), 0, result)
    return np.where(a == 0, _HIGH, result)


def _inverse(a: Array) -> Array:
    """1 / (1 + a) · 2 of a in 0 … 1, two bits before the point"""
    total = a + _HIGH
    half = (total + 1) >> 1
    x = _wrapped(_constant(1515870810) + _product(half, _constant(-1010580540)))
    for _ in range(3):
        rest = (1 << 13) - _product(half, x)
        x = _wrapped(x + saturated(_product(x, rest) << 2))
    return x


def tanh(a: Array, whole_bits: int) -> Array:
    """In steps of 2^-15; `whole_bits` (0 … 6) of 16 stand before the point"""
    x = _inverse(_exp(np.where(a < 0, a, -a), whole_bits + 1))
    below = saturated(_wrapped(x - (1 << 13)) << 2)
    return np.where(a == 0, 0, np.where(a < 0, -below, below))


def sigmoid(a: Array) -> Array:
    """Of a in steps of 2^-12, in steps of 2^-15"""
    above = saturated(_inverse(_exp(-np.abs(a), 3)) << 1)
    return np.where(a == 0, 1 << 14, np.where(a > 0, above, _HIGH - above))


def product(a: Array, b: Array, shift: int) -> Array:
    """a·b / 2^shift, ties away from 0, of 16 bits"""
    return _wrapped(_halved(a * b, shift))


def normalized(x: Array, weight: Array, bias: Array, scale: float) -> Array:
    """Rows (B,H) of 16 bits less their mean, over their deviation, times a weight in steps of
    `scale`, plus a bias"""
    least = max(1, int(np.float32(10000) * np.float32(scale)))
    count = x.shape[-1]
    mean = _truncated(x.sum(-1) << _FINE, count)
    variance = (x * x).sum(-1) * ((1 << _SQUARE) // count) - mean * mean
    variance = _truncated(variance, 1 << _SQUARE)
    y = np.empty_like(x)
    whole, exponent = fraction(scale)
    for row, (m, v) in enumerate(zip(mean, np.where(variance < 1, least, variance), strict=True)):
        fine = rescaled_by((x[row] << _FINE) - m, *_inverse_root(int(v)))
        wide = fine * weight + bias
        rounded = _truncated(wide + np.where(wide > 0, 512, -512), 1 << _FINE)
        y[row] = rescaled_by(rounded, whole, exponent + 12)
    return saturated(y)


def _truncated(x: Array, by: int) -> Array:
    return np.sign(x) * (np.abs(x) // by)


def _inverse_root(x: int) -> tuple[int, int]:
    """1 / sqrt(x) = whole / 2^31 · 2^exponent, by Newton's method in 32 bits"""
    if x <= 1:
        return (1 << 31) - 1, 0
    shift = 11
    while x >= 1 << 29:
        x, shift = x // 4, shift + 1
    pairs = (31 - x.bit_length()) // 2 - 1
    shift -= pairs
    one = 1 << 28
    given = (x << 2 * pairs) >> 1
    half, y = given + 1 >> 1, one
    for _ in range(5):
        cube = _bounded(_times(_times(y, y), y) << 6)
        y = _bounded((_times(one + one // 2, y) - _times(half, cube)) << 3)
    whole = _times(y, 1518500250)
    return (whole << -shift, 0) if shift < 0 else (whole, -shift)


def _times(a: int, b: int) -> int:
    return int(_high_product(np.array(a, np.int64), b, 32))


def _bounded(x: int) -> int:
    return min(max(x, -(1 << 31)), (1 << 31) - 1)
