"""Quantised elementwise, pooling and joining operators: dequantise, compute, quantise.

Everything is defined so that any order of summation gives the same integers: functions of one
number in float64, sums over windows and series as integers.

Source: com.microsoft operators of onnxruntime (ContribOperators.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..ir import Node, TypeInfo
from ._conditions import all_of, attr, constant, of_type
from ._core import Cost, OpDef, define_op
from ._helpers import broadcast_shapes, product
from .pool import average_pool, flat_pool, window_sums
from .quantize import saturate
from .tensor import concat

Array = np.ndarray


def _real(q: Array, scale: Array, zero: Array | None) -> Array:
    """(q − zero_point) · scale in float32"""
    shifted = q.astype(np.int32) - (0 if zero is None else zero.reshape(()).astype(np.int32))
    return shifted.astype(np.float32) * scale.reshape(()).astype(np.float32)


def _quantised(y: Array, scale: Array, zero: Array | None, dtype: np.dtype) -> Array:
    """clamp(round(y / scale) + zero_point)"""
    q = np.rint(y.astype(np.float32) / scale.reshape(()).astype(np.float32))
    return saturate(q + (0 if zero is None else zero.reshape(()).astype(np.float32)), dtype)


def _binary(name: str, fn: Callable[[Array, Array], Array]) -> OpDef:
    op = define_op(
        name,
        inputs="a a_scale a_zero_point? b b_scale b_zero_point? y_scale y_zero_point?",
        layout="elementwise",
        source=f"com.microsoft {name}-1",
        tolerance=0,
    )
    op.infer(lambda a, a_s, a_z, b, *_: TypeInfo(a.dtype, broadcast_shapes(a.shape, b.shape)))

    @op.reference
    def _(
        a: Array,
        a_scale: Array,
        a_zero: Array | None,
        b: Array,
        b_scale: Array,
        b_zero: Array | None,
        y_scale: Array,
        y_zero: Array | None,
    ) -> Array:
        y = fn(_real(a, a_scale, a_zero), _real(b, b_scale, b_zero))
        return _quantised(y, y_scale, y_zero, a.dtype)

    op.cost(
        lambda a, a_s, a_z, b, *_: Cost(flops=8 * product(broadcast_shapes(a.shape, b.shape) or ()))
    )
    op.kernel("cpu", "i8_binary", dtype="i8,u8", accepts_pitch=True)
    return op


_binary("QLinearAdd", np.add)
_binary("QLinearMul", np.multiply)


def _one_input(name: str, layout: str, flops: int, kernel: str, **attrs: Any) -> OpDef:
    op = define_op(
        name,
        inputs="x x_scale x_zero_point? y_scale y_zero_point?",
        attrs=attrs,
        layout=layout,
        axis_attrs=("axis",) if "axis" in attrs else (),
        source=f"com.microsoft {name}-1",
        tolerance=0,
    )
    op.infer(lambda x, *_, **__: TypeInfo(x.dtype, x.shape))
    op.cost(lambda x, *_, **__: Cost(flops=flops * x.size))
    pitch = layout == "elementwise"
    op.kernel(
        "cpu", kernel, dtype="i8,u8", accepts_pitch=pitch, in_place=True, when=constant(1, 2, 3, 4)
    )
    return op


def _exactly(y: Array, scale: Array, zero: Array | None, dtype: np.dtype) -> Array:
    """clamp(round(y / scale) + zero_point) in float64"""
    q = np.rint(y / float(scale.reshape(()))) + (0 if zero is None else int(zero.reshape(())))
    return saturate(q, dtype)


def _table(name: str, fn: Callable[..., Array], flops: int, **attrs: Any) -> None:
    op = _one_input(name, "elementwise", flops, "i8_table", **attrs)

    @op.reference
    def _(
        x: Array,
        x_scale: Array,
        x_zero: Array | None,
        y_scale: Array,
        y_zero: Array | None,
        **attrs: Any,
    ) -> Array:
        shifted = x.astype(np.int32) - (0 if x_zero is None else int(x_zero.reshape(())))
        y = fn(shifted * float(x_scale.reshape(())), **attrs)
        return _exactly(y, y_scale, y_zero, x.dtype)


_table(
    "QLinearLeakyRelu",
    lambda x, alpha: np.where(x < 0, float(np.float32(alpha)) * x, x),
    6,
    alpha=0.01,
)
_table("QLinearSigmoid", lambda x: 1 / (1 + np.exp(-x)), 14)

qlinear_softmax = _one_input("QLinearSoftmax", "axis", 16, "i8_softmax", axis=-1, opset=13)


@qlinear_softmax.reference
def _(
    x: Array,
    x_scale: Array,
    x_zero: Array | None,
    y_scale: Array,
    y_zero: Array | None,
    *,
    axis: int,
    opset: int,
) -> Array:
    """e = round(2^30 exp((x − max)·x_scale)) as integers; y = e / Σ e in float64"""
    below = x.astype(np.int32) - x.max(axis, keepdims=True, initial=np.iinfo(x.dtype).min)
    e = np.rint(np.exp(below * float(x_scale.reshape(()))) * 2**30).astype(np.int64)
    return _exactly(e / e.sum(axis, keepdims=True), y_scale, y_zero, x.dtype)


# ---- pooling

qlinear_average_pool = define_op(
    "QLinearAveragePool",
    inputs="x x_scale x_zero_point? y_scale y_zero_point?",
    attrs={**average_pool.attrs, "channels_last": 0},
    layout="channels_last",
    source="com.microsoft QLinearAveragePool-1",
    tolerance=0,
)


@qlinear_average_pool.infer
def _(x: TypeInfo, *_: Any, channels_last: int, **attrs: Any) -> TypeInfo:
    assert average_pool._infer is not None
    out = average_pool._infer(x, **attrs)
    assert isinstance(out, TypeInfo)
    return out


@qlinear_average_pool.reference
def _(
    x: Array,
    x_scale: Array,
    x_zero: Array | None,
    y_scale: Array,
    y_zero: Array | None,
    *,
    channels_last: int,
    **attrs: Any,
) -> Array:
    """AveragePool of the real values, summed as integers"""
    include = int(attrs.pop("count_include_pad"))
    shifted = x.astype(np.int64) - (0 if x_zero is None else int(x_zero.reshape(())))
    total, count = window_sums(shifted, include, attrs)
    return _mean(total, count, x_scale, y_scale, y_zero, x.dtype)


def _mean(
    total: Array, count: Any, x_scale: Array, y_scale: Array, y_zero: Array | None, dtype: np.dtype
) -> Array:
    """clamp(round(float32(total) · x_scale / (y_scale · count)) + zero_point), float32"""
    cells = np.asarray(count, np.float32)
    below = y_scale.reshape(()).astype(np.float32) * cells
    scale = x_scale.reshape(()).astype(np.float32) / below
    zero = 0 if y_zero is None else y_zero.reshape(()).astype(np.float32)
    return saturate(np.rint(total.astype(np.float32) * scale) + zero, dtype)


@qlinear_average_pool.cost
def _(x: TypeInfo, *_: Any, channels_last: int, **attrs: Any) -> Cost:
    assert average_pool._cost is not None
    return average_pool._cost(x, **attrs)


qlinear_global_average_pool = define_op(
    "QLinearGlobalAveragePool",
    inputs="x x_scale x_zero_point y_scale y_zero_point",
    attrs={"channels_last": 0},
    layout="channels_last",
    source="com.microsoft QLinearGlobalAveragePool-1",
    tolerance=0,
)
qlinear_global_average_pool.infer(
    lambda x, *_, **__: x.with_shape((*x.dims[:2], *[1] * (x.rank - 2)))
)


@qlinear_global_average_pool.reference
def _(
    x: Array, x_scale: Array, x_zero: Array, y_scale: Array, y_zero: Array, *, channels_last: int
) -> Array:
    """Mean over the spatial axes, summed as integers"""
    axes = tuple(range(2, x.ndim))
    total = (x.astype(np.int64) - int(x_zero.reshape(()))).sum(axes, keepdims=True)
    return _mean(total, x.size // max(1, total.size), x_scale, y_scale, y_zero, x.dtype)


qlinear_global_average_pool.cost(lambda x, *_, **__: Cost(flops=x.size))
for _op in (qlinear_average_pool, qlinear_global_average_pool):
    _op.kernel(
        "cpu",
        "i8_pool",
        dtype="i8,u8",
        accepts_pitch=True,
        accepts_halo=True,
        when=all_of(attr("channels_last", 0), flat_pool, constant(1, 2, 3, 4)),
    )

# ---- concat

qlinear_concat = define_op(
    "QLinearConcat",
    inputs="y_scale y_zero_point *xs",
    attrs={"axis": 0},
    source="com.microsoft QLinearConcat-1",
    tolerance=0,
)


@qlinear_concat.infer
def _(y_scale: TypeInfo, y_zero: TypeInfo, *xs: TypeInfo, axis: int) -> TypeInfo:
    assert concat._infer is not None
    out = concat._infer(*xs[::3], axis=axis)
    assert isinstance(out, TypeInfo)
    return out.with_dtype(y_zero.dtype)


@qlinear_concat.reference
def _(y_scale: Array, y_zero: Array, *xs: Array, axis: int) -> Array:
    """Each of (x, scale, zero_point) requantised to the output's parameters, then joined"""
    parts = [
        x if float(s) == float(y_scale) and int(z) == int(y_zero) and x.dtype == y_zero.dtype
        else _quantised(_real(x, s, z), y_scale, y_zero, y_zero.dtype)
        for x, s, z in zip(xs[::3], xs[1::3], xs[2::3])
    ]  # fmt: skip
    return np.concatenate(parts, axis)


def _fixed_scales(node: Node, types: list[TypeInfo | None]) -> bool | str:
    """All but the joined tensors are constants, and those are bytes."""
    parts = range(2, len(types), 3)
    if any(t is None or t.const is None for i, t in enumerate(types) if i not in parts):
        return "a scale is computed"
    return of_type(*parts, dtype="i8,u8")(node, types)


qlinear_concat.kernel("cpu", "i8_concat", when=_fixed_scales)
