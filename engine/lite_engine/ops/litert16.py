"""How LiteRT computes with activations of 16 bits ("16x8" models): zero points are 0, weights int8.

XNNPACK has no such kernels; these are LiteRT's own. All take integers as they are and give whole
numbers that are not yet clamped to 16 bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .litert_functions import fraction, rescaled_by, rescaled_twice, square_root

Array = np.ndarray
#: Steps of the tables of functions; values between them are interpolated.
_STEPS = 512


def fractions(ratio: Array | float) -> tuple[Array, Array]:
    """ratio = whole / 2^31 · 2^exponent"""
    part, exponent = np.frexp(np.asarray(ratio, np.float64))
    whole = np.floor(part * 2**31 + 0.5).astype(np.int64)
    full = whole == 1 << 31
    return np.where(full, whole >> 1, whole), (exponent + full).astype(np.int64)


def _shifted(x: Array, shift: Array) -> Array:
    """x / 2^shift, ties up"""
    return (x + np.where(shift > 0, 1 << np.maximum(shift, 1) - 1, 0)) >> shift


def rescaled_wide(x: Array, ratio: Array | float) -> Array:
    """Sums of 64 bits of a convolution: times a fraction of 15 bits and a power of two"""
    whole, exponent = fractions(ratio)
    fine = np.where(whole < 0x7FFF0000, whole + (1 << 15) >> 16, 0x7FFF)
    return _shifted(x * fine, np.clip(15 - exponent, 0, 62))


def rescaled_once(x: Array, ratio: Array | float) -> Array:
    """Sums of 64 bits of a dense layer: times a fraction of 31 bits and a power of two, exactly"""
    whole, exponent = fractions(ratio)
    shift = np.clip(31 - exponent, 1, 62)
    # The product in two halves, because it does not fit 64 bits.
    high, low = (x >> 31) * whole, (x & (1 << 31) - 1) * whole + (1 << shift - 1)
    far = high + (low >> 31) >> np.maximum(shift - 31, 0)
    return np.where(shift >= 31, far, (high << np.maximum(31 - shift, 0)) + (low >> shift))


def rescaled_up(x: Array, ratio: Array | float) -> Array:
    """Sums of 32 bits of a dense layer without bias: a fraction, rounded, and a power of two,
    rounded again"""
    whole, exponent = fractions(ratio)
    wide = np.clip(x << np.clip(exponent, 0, 31), -(1 << 31), (1 << 31) - 1)
    return _shifted(_shifted(wide * whole, np.array(31)), np.clip(-exponent, 0, 31))


def convolved(acc: Array, x_scale: Array, w_scale: Array, y_scale: Array) -> Array:
    """The sums of a convolution; scales broadcast against them"""
    ratio = np.float64(x_scale) * np.float64(w_scale) / np.float64(y_scale)
    return rescaled_wide(acc, ratio)


def dense(acc: Array, a_scale: Array, b_scale: Array, y_scale: Array, *, bias: bool) -> Array:
    """The sums of a dense layer; those with a bias have 64 bits"""
    product = np.float64(a_scale) * np.float64(b_scale)
    if not bias and np.size(b_scale) == 1:
        product = np.float64(np.float32(product))
    return (rescaled_once if bias else rescaled_up)(acc, product / np.float64(y_scale))


def mean(total: Array, count: int, x_scale: float, y_scale: float) -> Array:
    """Sums over their number, which becomes part of the fraction"""
    whole, exponent = fraction(float(np.float32(x_scale)) / float(np.float32(y_scale)))
    shift = min(count.bit_length() - 1, 32, 31 + exponent)
    return rescaled_by(total, (whole << shift) // count, exponent - shift)


def sum_of(
    a: Array, b: Array, a_scale: float, b_scale: float, y_scale: float, *, sign: int
) -> Array:
    """a + b or a − b, both with 15 more bits at twice the larger of their scales"""
    common = 2 * float(max(np.float32(a_scale), np.float32(b_scale)))
    left = rescaled_twice(a.astype(np.int64) << 15, float(np.float32(a_scale)) / common)
    right = rescaled_twice(b.astype(np.int64) << 15, float(np.float32(b_scale)) / common)
    return rescaled_twice(left + sign * right, common / ((1 << 15) * float(np.float32(y_scale))))


def resized(x: Array, size: Sequence[int], mode: str) -> Array:
    """(N,C,H,W) interpolated with weights of 10 bits, ties away from 0"""
    (top, bottom, down), (left, right, along) = (
        _line(n, m, mode) for n, m in zip(x.shape[2:], size, strict=True)
    )
    wide = x.astype(np.int64)
    rows = wide[:, :, top] * (1024 - down)[:, None] + wide[:, :, bottom] * down[:, None]
    y = rows[..., left] * (1024 - along) + rows[..., right] * along
    return (np.sign(y) * (np.abs(y) + (1 << 19) >> 20)).astype(x.dtype)


def _line(n_in: int, n_out: int, mode: str) -> tuple[Array, Array, Array]:
    """The two neighbours of each position of a resized axis, and the 1024ths behind the first"""
    cut = int(mode == "align_corners" and n_out > 1)
    step = (1024 * (n_in - cut) + (n_out - cut) // 2) // (n_out - cut)
    at = np.arange(n_out) * step
    if mode == "half_pixel":
        at = at + step // 2 - 512
    low = np.clip(at >> 10, 0, n_in - 1)
    return low, np.clip(at + 1023 >> 10, 0, n_in - 1), at - (low << 10)


def table_of(function: Callable[[Array], Any], low: Any, high: Any, y_step: Any) -> Array:
    """513 values of a function from `low` to `high`, in steps of y, bent towards the middle of each
    interval, in float32"""
    f32 = np.float32
    step = f32((f32(high) - f32(low)) / f32(_STEPS))
    at = f32(low) + np.arange(_STEPS, dtype=f32) * step
    inverse = f32(1 / y_step)

    def steps(x: Array) -> Array:
        return np.asarray(function(x), f32) * inverse

    first, last = _rounded(steps(at)), steps(f32(low) + np.arange(1, _STEPS + 1, dtype=f32) * step)
    between = _rounded((last + first) / f32(2)) - _rounded(steps(at + step / f32(2)))
    bent = first - _rounded(between / f32(2))
    end = _rounded(steps(np.array([high], f32)))
    return np.clip(np.concatenate([bent, end]), -32768, 32767).astype(np.int64)


def _rounded(x: Array) -> Array:
    """To whole numbers, ties away from 0."""
    return np.sign(x) * np.floor(np.abs(x) + np.asarray(0.5, x.dtype))


def looked_up(x: Array, table: Array) -> Array:
    """A table's values at integers of 16 bits, interpolated with 7 bits"""
    index, offset = 256 + (x >> 7), x & 127
    base = table[index]
    return base + ((table[index + 1] - base) * offset + 64 >> 7)


_EXP = table_of(np.exp, -10, 0, 2 / 65536)
_RECIPROCAL = table_of(lambda x: 1 / (1 + x), 0, 1, 2 / 65536)


def softmax(x: Array, x_scale: float) -> Array:
    """Along the last axis, in steps of 1/32768"""
    below = x.astype(np.int64) - x.max(-1, keepdims=True, initial=-32768)
    fine = rescaled_twice(below, float(np.float32(x_scale)) / (10.0 / 65535.0)) + 32767
    e = looked_up(np.clip(fine, -32768, 32767), _EXP)
    total = e.sum(-1, keepdims=True)
    headroom = 32 - _bits(total)
    shifted = ((total << headroom - 1) + (1 << 13)) >> 14
    inverse = looked_up(np.clip(shifted - (1 << 15) - (1 << 16), -32768, 32767), _RECIPROCAL)
    right = 31 - headroom
    return np.clip((e * inverse + (1 << right - 1)) >> right, 0, 32767)


def _bits(x: Array) -> Array:
    return np.frexp(x.astype(np.float64))[1].astype(np.int64)


def _sigmoid_table() -> Array:
    """sigmoid(i / 24) in steps of 1/65536, less half of what interpolation adds in the middle"""
    first, middle, after = (65536 / (1 + np.exp(-(np.arange(256) + d) / 24)) for d in (0, 0.5, 1))
    table = np.rint(first - ((first + after) / 2 - middle) / 2).astype(np.int64)
    table[-1] = 65535
    return table


_SIGMOID = _sigmoid_table()


def _inner(x: Array, x_scale: float) -> Array:
    """x in steps of 1/12288, so that 2^17 are 10.7"""
    factor, shift = float(np.float32(x_scale)) * 4096 * 3, 0
    while factor <= 32767 / 2 and shift <= 30:
        factor, shift = factor * 2, shift + 1
    return (x.astype(np.int64) * int(factor) + (1 << shift >> 1)) >> shift


def sigmoid(x: Array, x_scale: float) -> Array:
    """In steps of 1/32768"""
    at = _inner(x, x_scale)
    result = _sigmoid_of(np.abs(at), 9, 0x7FFF << 10)
    return np.where(at >= 0, result + (1 << 9), (1 << 25) - result + (1 << 9) - 1) >> 10


def tanh(x: Array, x_scale: float) -> Array:
    """2·sigmoid(2x) − 1, in steps of 1/32768"""
    at = _inner(x, x_scale)
    result = _sigmoid_of(np.abs(at), 8, 0xFFFF << 8) - (1 << 23)
    return np.where(at >= 0, result + (1 << 7), -result + (1 << 7) - 1) >> 8


def _sigmoid_of(at: Array, bits: int, most: int) -> Array:
    index = np.minimum(at >> bits, 254)
    low, high, rest = _SIGMOID[index], _SIGMOID[index + 1], at & (1 << bits) - 1
    return np.where(at >> bits >= 255, most, (low << bits) + rest * (high - low))


#: erf, which NumPy lacks; of the 1,537 numbers that a table needs
_ERF = np.frompyfunc(math.erf, 1, 1)


def _gelu(x: Array) -> Array:
    f32 = np.float32
    return f32(0.5) * x * (1 + np.asarray(_ERF(x * f32(0.5**0.5)), f32))


def _tabulated(function: Callable[[Array, Array], Array]) -> Callable[..., Array]:
    """A function of real numbers as a table; it gets them and what the least and the largest
    integer of y stand for, which answer for numbers that have no value."""

    def run(x: Array, x_scale: float, y_scale: float, **_: Any) -> Array:
        least, most = (np.float32(y_scale) * np.float32(i) for i in (-32768, 32767))
        low, high = (np.float32(x_scale) * np.float32(i) for i in (-32768, 32767))
        with np.errstate(all="ignore"):
            table = table_of(
                lambda v: function(v, np.stack([least, most])), low, high, (most - least) / 65536
            )
        return looked_up(x, table)

    return run


def _rescaled(x: Array, x_scale: float, y_scale: float) -> Array:
    return rescaled_twice(x, float(np.float32(x_scale) / np.float32(y_scale)))


def _leaky_relu(x: Array, x_scale: float, y_scale: float, alpha: float = 0.01) -> Array:
    below = np.float32(np.float32(x_scale) * np.float32(alpha)) / np.float32(y_scale)
    return np.where(x >= 0, _rescaled(x, x_scale, y_scale), rescaled_twice(x, float(below)))


def _requantized(x: Array, x_scale: float, y_scale: float) -> Array:
    return rescaled_twice(x, float(np.float32(x_scale)) / float(np.float32(y_scale)))


#: Operator → its answers to integers less their zero point, less that of y; "" is QUANTIZE.
FUNCTIONS: dict[str, Callable[..., Array]] = {
    "": _requantized,
    "Abs": lambda x, x_scale, y_scale: _rescaled(np.abs(x), x_scale, y_scale),
    "Clip": _rescaled,
    "Exp": _tabulated(lambda x, ends: np.exp(x)),
    "Gelu": _tabulated(lambda x, ends: _gelu(x)),
    "LeakyRelu": _leaky_relu,
    "Log": _tabulated(lambda x, ends: np.where(x <= 0, ends[0], np.log(x))),
    "Relu": lambda x, x_scale, y_scale: _rescaled(np.maximum(x, 0), x_scale, y_scale),
    "Rsqrt": _tabulated(lambda x, ends: np.where(x <= 0, ends[1], 1 / np.sqrt(x))),
    "Sigmoid": lambda x, x_scale, y_scale: sigmoid(x, x_scale),
    "Sqrt": square_root,
    "Tanh": lambda x, x_scale, y_scale: tanh(x, x_scale),
}
