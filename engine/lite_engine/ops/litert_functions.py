"""Functions of one byte as LiteRT's default kernels compute them in fixed point.

All take integers less their zero point, (n,) int64, and the scales of x and y; they give integers
less y's zero point. LiteRT's own kernels (as opposed to XNNPACK's) multiply by an int32 fraction
and round twice: the doubled product's upper half, then what is shifted out (gemmlowp's
SaturatingRoundingDoublingHighMul and RoundingDivideByPOT).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray
#: The exponents of HARD_SWISH, whose numbers have 16 bits.
_SIXTEEN = (-(1 << 15), (1 << 15) - 1)


def rescaled(x: Array, ratio: float) -> Array:
    """XNNPACK: times a factor of 8 bits behind the point; ties go up."""
    return (x * int(np.rint(np.float32(256) * np.float32(ratio))) + 128) >> 8


def rescaled_twice(x: Array, ratio: float) -> Array:
    """LiteRT: times a fraction of 31 bits, rounded, and a power of two, rounded again."""
    return rescaled_by(x, *fraction(ratio))


def rescaled_by(x: Array, whole: int, exponent: int) -> Array:
    """x · whole / 2^31 · 2^exponent as `rescaled_twice` rounds"""
    if exponent < -31:
        return np.zeros_like(x)
    wide = np.clip(x << min(max(exponent, 0), 31), -(1 << 31), (1 << 31) - 1)
    return _halved(_high_product(wide, whole, 32), -exponent)


def fraction(real: float) -> tuple[int, int]:
    """real = whole / 2^31 · 2^exponent"""
    part, exponent = math.frexp(float(real))
    whole = math.floor(part * 2**31 + 0.5)
    return (whole // 2, exponent + 1) if whole == 2**31 else (whole, exponent)


def _high_product(a: Array, b: int, bits: int) -> Array:
    """The upper half of 2·a·b, rounded; saturated."""
    product = a * np.int64(b)
    nudged = product + np.where(product >= 0, 1 << bits - 2, 1 - (1 << bits - 2))
    high = np.sign(nudged) * (np.abs(nudged) >> bits - 1)
    return np.minimum(high, (1 << bits - 1) - 1)


def _halved(x: Array, times: int) -> Array:
    """x / 2^times, ties away from 0."""
    if times <= 0:
        return x
    rest = x & (1 << times) - 1
    return (x >> times) + (rest > ((1 << times) - 1 >> 1) + (x < 0))


def identity(x: Array, x_scale: float, y_scale: float) -> Array:
    return rescaled(x, _ratio(x_scale, y_scale))


def leaky_relu(x: Array, x_scale: float, y_scale: float, alpha: float = 0.01) -> Array:
    ratio = _ratio(x_scale, y_scale)
    return np.where(x < 0, rescaled(x, ratio * np.float32(alpha)), rescaled(x, ratio))


def absolute(x: Array, x_scale: float, y_scale: float) -> Array:
    return rescaled_twice(np.abs(x), _ratio(x_scale, y_scale))


def hard_swish(x: Array, x_scale: float, y_scale: float) -> Array:
    """x · clamp(x + 3, 0, 6) / 6 in numbers of 16 bits: x scaled to y, times (x / 3 + 1) / 2."""
    fine = np.float32(x_scale) / np.float32(128)
    of_y, y_exponent = _fraction_of_16(_ratio(fine, y_scale))
    of_gate, exponent = _fraction_of_16(_ratio(fine, np.float32(3) / np.float32(1 << 15)))
    wide = x << 7
    gate = wide
    if exponent > 0:
        gate = np.clip(gate << exponent - 1, *_SIXTEEN)
    gate = _high_product(gate, of_gate, 16)
    if exponent > 0:
        gate = np.clip(gate << 1, *_SIXTEEN)
    gate = _halved(gate, -exponent)
    product = (gate + (1 << 15) >> 1) * _high_product(wide, of_y, 16)
    return _halved(np.sign(product) * (np.abs(product) >> 15), -y_exponent)


def square_root(x: Array, x_scale: float, y_scale: float) -> Array:
    """sqrt(x · x_scale) / y_scale in float32, without its fraction"""
    real = np.sqrt(np.maximum(x, 0).astype(np.float32) * np.float32(x_scale))
    return np.trunc(real / np.float32(y_scale)).astype(np.int64)


def _fraction_of_16(real: float) -> tuple[int, int]:
    whole, exponent = fraction(real)
    return min(whole + (1 << 15) >> 16, _SIXTEEN[1]), exponent


def _ratio(a: Any, b: Any) -> Any:
    """a / b in float32"""
    return np.float32(np.float32(a) / np.float32(b))


#: Operator → its function; "" is QUANTIZE between integers of one type.
FUNCTIONS: dict[str, Callable[..., Array]] = {
    "": identity, "LeakyRelu": leaky_relu, "Abs": absolute, "HardSwish": hard_swish,
    "Sqrt": square_root,
}  # fmt: skip
