"""Operators of quantized TensorFlow Lite models in LiteRT's fixed point.

LiteRT's own kernels (those that XNNPACK does not replace) bring sums of integers to the scale of
the result by a fraction of 31 bits and a power of two, rounding twice
(`litert_functions.rescaled_twice`); XNNPACK interpolates with weights of 11 bits. Models get these
operators by an importer's `rounding="litert"`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import TypeInfo
from . import litert16
from ._conditions import all_of, attr, constant, rank, separate_axes
from ._core import REQUIRED, OpDef, define_op
from ._helpers import broadcast_shapes, check_word, product
from ._records import Cost
from ._samples import Draw, Sample
from ._scales import Scale, saturate, scales
from .litert_functions import rescaled_twice
from .matmul import matmul_macs, matmul_shape

Array = np.ndarray
_SIGNATURE = "a a_scale a_zero_point b b_scale b_zero_point y_scale y_zero_point"
_PARAMETERS = (1, 2, 4, 5, 6, 7)


def _number(scale: Scale) -> np.float32:
    return np.float32(scale.scale.reshape(()))


def prelu(a: Array, of_a: Scale, b: Array, of_b: Scale, of_y: Scale) -> Array:
    """a and, below zero, a·b, each rescaled by its own ratio; without y's zero point"""
    x, slope = of_a.shifted(a, np.int64), of_b.shifted(b, np.int64)
    s_a, s_b, s_y = _number(of_a), _number(of_b), _number(of_y)
    below = rescaled_twice(x * slope, float(s_a * s_b / s_y))
    return np.where(x < 0, below, rescaled_twice(x, float(s_a / s_y)))


def squared_difference(a: Array, of_a: Scale, b: Array, of_b: Scale, of_y: Scale) -> Array:
    """Both operands with 7 more bits at twice the larger of their scales, subtracted, squared"""
    s_a, s_b, s_y = (float(_number(s)) for s in (of_a, of_b, of_y))
    common = 2 * max(s_a, s_b)
    left = rescaled_twice(of_a.shifted(a, np.int64) << 7, s_a / common)
    right = rescaled_twice(of_b.shifted(b, np.int64) << 7, s_b / common)
    return rescaled_twice((left - right) ** 2, common * common / ((1 << 14) * s_y))


def _product(a: Array, of_a: Scale, b: Array, of_b: Scale, of_y: Scale) -> Array:
    """Sums of products, rescaled by a_scale·b_scale (float32) / y_scale"""
    acc = np.matmul(of_a.shifted(a, np.int64), of_b.shifted(b, np.int64))
    if a.dtype == np.int16:
        return litert16.rescaled_wide(
            acc, float(_number(of_a) * _number(of_b)) / float(_number(of_y))
        )
    return rescaled_twice(acc, float(_number(of_a) * _number(of_b)) / float(_number(of_y)))


def _two_operands(name: str, fn: Callable[..., Array], kernel: str, source: str) -> OpDef:
    """`fn(a, its Scale, b, its Scale, Scale of y)` answers integers without y's zero point."""
    op = define_op(name, inputs=_SIGNATURE, source=source, tolerance=0)

    @op.reference
    def _(a: Array, a_scale: Array, a_zero: Array, b: Array, *rest: Array) -> Array:
        of_b, of_y = scales(rest)
        y = fn(a, Scale(a_scale, a_zero), b, of_b, of_y)
        return saturate(y + of_y.zero.reshape(()).astype(np.int64), a.dtype)

    op.kernel("cpu", kernel, dtype="i8,u8", when=constant(*_PARAMETERS))
    on_device = all_of(constant(*_PARAMETERS), separate_axes)
    op.kernel("opencl", kernel, dtype="i8,u8", when=on_device)
    return op


def _elementwise(name: str, fn: Callable[..., Array], source: str) -> OpDef:
    op = _two_operands(name, fn, "i8_fixed", source)
    op.infer(lambda a, a_s, a_z, b, *_: TypeInfo(a.dtype, broadcast_shapes(a.shape, b.shape)))
    op.cost(
        lambda a, a_s, a_z, b, *_: Cost(
            flops=16 * product(broadcast_shapes(a.shape, b.shape) or ())
        )
    )
    return op


qlinear_prelu = _elementwise("QLinearPRelu", prelu, "ours: LiteRT's int8 PRELU")
qlinear_squared_difference = _elementwise(
    "QLinearSquaredDifference", squared_difference, "ours: LiteRT's int8 SQUARED_DIFFERENCE"
)
qlinear_batch_matmul = _two_operands(
    "QLinearBatchMatMul", _product, "i8_batch_matmul", "ours: LiteRT's int8 BATCH_MATMUL"
)
qlinear_batch_matmul.kernel("cpu", "i16_batch_matmul", dtype="i16", when=constant(*_PARAMETERS))
qlinear_batch_matmul.infer(lambda a, a_s, a_z, b, *_: matmul_shape(a, b))
qlinear_batch_matmul.cost(lambda a, a_s, a_z, b, *_: Cost(macs=matmul_macs(a, b)))


# ---- interpolation

qlinear_resize = define_op(
    "QLinearResize",
    inputs="x",
    attrs={"size": REQUIRED, "coordinate_transformation_mode": "asymmetric"},
    layout="channels_last",
    source="ours: XNNPACK's bilinear interpolation of bytes",
    tolerance=0,
)


class Line(NamedTuple):
    """Where the positions of a resized axis lie: between `low` and `high`, `weight`/2048 behind."""

    low: Array
    high: Array
    weight: Array


def line(n_in: int, n_out: int, mode: str) -> Line:
    """In float32, as XNNPACK finds them."""
    cut = int(mode == "align_corners" and n_out != 1)
    step = np.float32(n_in - cut) / np.float32(n_out - cut)
    at = np.arange(n_out).astype(np.float32) * step
    if mode == "half_pixel":
        at = np.clip(at + np.float32(0.5 * step - np.float32(0.5)), 0, np.float32(n_in - 1))
    low = np.minimum(at.astype(np.int64), n_in - 1)
    weight = np.rint((at - low.astype(np.float32)) * np.float32(2048)).astype(np.int64)
    return Line(low, np.minimum(low + 1, n_in - 1), weight)


@qlinear_resize.infer
def _(x: TypeInfo, *, size: Sequence[int], coordinate_transformation_mode: str) -> TypeInfo:
    check_word(
        "coordinate_transformation_mode", coordinate_transformation_mode,
        "asymmetric", "align_corners", "half_pixel",
    )  # fmt: skip
    if x.rank != 4 or len(size) != 2 or min(size) < 1:
        raise ShapeError(
            tr("needs 4 axes and two positive sizes, got {rank} and {size}", rank=x.rank, size=size)
        )
    return x.with_shape((*x.dims[:2], *size))


@qlinear_resize.reference
def _(x: Array, *, size: Sequence[int], coordinate_transformation_mode: str) -> Array:
    if x.dtype == np.int16:
        return litert16.resized(x, size, coordinate_transformation_mode)
    """Rows of (top·2^11 + (bottom − top)·weight + 2^21) >> 22, top and bottom interpolated alike"""
    down, along = (
        line(n, m, coordinate_transformation_mode) for n, m in zip(x.shape[2:], size, strict=True)
    )
    wide = x.astype(np.int64)
    wide = (wide[..., along.low] << 11) + (
        wide[..., along.high] - wide[..., along.low]
    ) * along.weight
    top, bottom = wide[:, :, down.low], wide[:, :, down.high]
    y = (top << 11) + (bottom - top) * down.weight[:, None]
    return (y + (1 << 21) >> 22).astype(x.dtype)


qlinear_resize.cost(lambda x, *, size, **_: Cost(flops=8 * product((*x.dims[:2], *size))))
_known_mode = all_of(
    rank(4), attr("coordinate_transformation_mode", "asymmetric", "align_corners", "half_pixel")
)
for _types, _kernel in (("i8,u8", "i8_resize_linear"), ("i16", "i16_resize_linear")):
    qlinear_resize.kernel(
        "cpu", _kernel, dtype=_types, accepts_pitch=True, accepts_halo=True, when=_known_mode
    )  # fmt: skip
qlinear_resize.kernel("opencl", "i8_resize_linear", dtype="i8,u8", when=_known_mode)


# ---- sample calls


def _pair(draw: Draw, a: tuple[int, ...], b: tuple[int, ...], y_scale: float) -> Sample:
    inputs = [draw.full(*a), draw.scalar(0.03, np.float32), draw.zero_point(4)]
    inputs += [draw.full(*b), draw.scalar(0.07, np.float32), draw.zero_point(1)]
    inputs += [draw.scalar(y_scale, np.float32), draw.zero_point(5)]
    return Sample(inputs, constant=_PARAMETERS)


def _elementwise_samples(draw: Draw) -> Iterator[Sample]:
    for a, b in (
        ((3, 700), (3, 700)), ((2, 5, 7), (7,)), ((4, 9), (1,)), ((7,), (90, 7)),
        ((1, 30, 24), (1, 1, 24)), ((1, 5, 6, 7), (1, 5, 6, 7)),
    ):  # fmt: skip
        for y_scale in (0.011, 0.5, 3.0):
            yield _pair(draw, a, b, y_scale)


qlinear_prelu.samples(_elementwise_samples)
qlinear_squared_difference.samples(_elementwise_samples)


@qlinear_batch_matmul.samples
def _(draw: Draw) -> Iterator[Sample]:
    for a, b in (
        ((3, 5), (5, 7)), ((2, 1, 64), (2, 64, 70)), ((4, 2, 5, 33), (2, 33, 16)),
        ((1, 1), (1, 1)), ((2, 9, 300), (1, 300, 129)),
    ):  # fmt: skip
        yield _pair(draw, a, b, 0.5)


@qlinear_resize.samples
def _(draw: Draw) -> Iterator[Sample]:
    for mode in ("asymmetric", "align_corners", "half_pixel"):
        for shape, size in (
            ((1, 8, 8, 14), (13, 21)), ((2, 3, 5, 4), (10, 8)), ((1, 67, 7, 6), (3, 2)),
            ((1, 5, 1, 1), (4, 1)),
        ):  # fmt: skip
            attrs = {"size": list(size), "coordinate_transformation_mode": mode}
            yield Sample([draw.full(*shape)], attrs)
