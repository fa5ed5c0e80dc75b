"""How LiteRT's default kernels round where they do not follow ONNX's rule.

An operator with `rounding="litert"`, which the TFLite importer sets, computes so; without it the
rule is ONNX's. Sources: XNNPACK's int8 kernels (vadd, vmul, vcvt, vlrelu) and, for pooling, the
kernels that LiteRT has of its own. Activations of 16 bits follow `litert16`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from . import litert16
from ._scales import Scale, saturate
from .litert_functions import rescaled_twice

Array = np.ndarray

LITERT = "litert"
#: Ratios of an operand's scale to the sum's for which XNNPACK has the kernel.
SUM_RATIOS = (2.0**-10, 2.0**8)


class Factors(NamedTuple):
    """y = clamp(((bias + a_factor·a + b_factor·b) >> shift) + y_zero), all of it in int32."""

    a: int
    b: int
    bias: int
    shift: int


def has_ratios(a_scale: float, b_scale: float, y_scale: float) -> bool:
    """Whether a sum of these scales has fixed-point factors."""
    low, high = SUM_RATIOS
    return all(low <= s / y_scale < high for s in (a_scale, b_scale))


def factors(a: Scale, b: Scale, y: Scale, sign: int) -> Factors:
    """Of a + b or a − b (`sign` −1). The larger factor has 21 bits."""
    ratios = [np.float32(s.scale.reshape(())) / np.float32(y.scale.reshape(())) for s in (a, b)]
    shift = 21 - math.frexp(float(max(ratios)))[1]
    of_a, of_b = (int(np.rint(math.ldexp(float(r), shift))) for r in ratios)
    of_b *= sign
    zeros = [0 if s.zero is None else int(s.zero.reshape(())) for s in (a, b)]
    return Factors(of_a, of_b, (1 << shift - 1) - of_a * zeros[0] - of_b * zeros[1], shift)


def added(a: Array, of_a: Scale, b: Array, of_b: Scale, of_y: Scale, sign: int) -> Array:
    """The sum in fixed point; ties go up."""
    if a.dtype == np.int16:
        by = (float(s.scale.reshape(())) for s in (of_a, of_b, of_y))
        return saturate(litert16.sum_of(a, b, *by, sign=sign), a.dtype)
    f = factors(of_a, of_b, of_y, sign)
    total = f.bias + f.a * a.astype(np.int64) + f.b * b.astype(np.int64)
    return saturate((total >> f.shift) + _zero(of_y), a.dtype)


def product_scale(of_a: Scale, of_b: Scale, of_y: Scale) -> np.float32:
    """a_scale·b_scale / y_scale, in float32"""
    a, b, y = (np.float32(s.scale.reshape(())) for s in (of_a, of_b, of_y))
    return np.float32(a * b / y)


def multiplied(a: Array, of_a: Scale, b: Array, of_b: Scale, of_y: Scale) -> Array:
    """rint(float32((a − a_zero)·(b − b_zero)) · product_scale)"""
    if a.dtype == np.int16:
        whole = a.astype(np.int64) * b
        return saturate(rescaled_twice(whole, float(product_scale(of_a, of_b, of_y))), a.dtype)
    product = (of_a.shifted(a) * of_b.shifted(b)).astype(np.float32)
    return saturate(np.rint(product * product_scale(of_a, of_b, of_y)) + _zero(of_y), a.dtype)


def mean(total: Array, count: Array | int) -> Array:
    """Sums of integers over their number, ties away from 0."""
    count = np.maximum(count, 1)
    return np.sign(total) * ((np.abs(total) + count // 2) // count)


def map_mean(total: Array, count: int, of_x: Scale, of_y: Scale, dtype: np.dtype) -> Array:
    """rint(total · (x_scale / y_scale / count) + y_zero − x_zero · (x_scale / y_scale)) of sums of
    integers as they are, in float32 step by step"""
    if dtype == np.int16:
        by = (float(s.scale.reshape(())) for s in (of_x, of_y))
        return saturate(litert16.mean(total, count, *by), dtype)
    ratio = np.float32(of_x.scale.reshape(())) / np.float32(of_y.scale.reshape(()))
    bias = np.float32(_zero(of_y)) - np.float32(_zero(of_x)) * ratio
    mean_of_y = total.astype(np.float32) * np.float32(ratio / np.float32(count))
    return saturate(np.rint(mean_of_y + bias), dtype)


def _zero(scale: Scale) -> int:
    return 0 if scale.zero is None else int(scale.zero.reshape(()))
