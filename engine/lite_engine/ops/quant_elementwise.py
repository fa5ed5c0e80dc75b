"""Quantised elementwise, pooling and joining operators: dequantise, compute in float32, quantise.

Source: com.microsoft operators of onnxruntime (ContribOperators.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..ir import TypeInfo
from ._conditions import attr
from ._core import Cost, OpDef, define_op
from ._helpers import broadcast_shapes, product
from .activation import _sigmoid
from .pool import average_pool
from .quantize import saturate
from .softmax import softmax
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


qlinear_add = _binary("QLinearAdd", np.add)
qlinear_mul = _binary("QLinearMul", np.multiply)


def _unary(name: str, fn: Callable[..., Array], layout: str, flops: int, **attrs: Any) -> OpDef:
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

    @op.reference
    def _(
        x: Array,
        x_scale: Array,
        x_zero: Array | None,
        y_scale: Array,
        y_zero: Array | None,
        **attrs: Any,
    ) -> Array:
        return _quantised(fn(_real(x, x_scale, x_zero), **attrs), y_scale, y_zero, x.dtype)

    op.cost(lambda x, *_, **__: Cost(flops=flops * x.size))
    return op


_unary(
    "QLinearLeakyRelu", lambda x, alpha: np.where(x < 0, alpha * x, x), "elementwise", 6, alpha=0.01
)
_unary("QLinearSigmoid", _sigmoid, "elementwise", 14)
_unary("QLinearSoftmax", lambda x, axis, opset: softmax(x, axis), "axis", 16, axis=-1, opset=13)

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
    """AveragePool of the real values"""
    assert average_pool._reference is not None
    y = average_pool._reference(_real(x, x_scale, x_zero), **attrs)
    return _quantised(y, y_scale, y_zero, x.dtype)


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
    count = x.size // max(1, total.size)
    scale = x_scale.reshape(()).astype(np.float32) / (
        y_scale.reshape(()).astype(np.float32) * np.float32(count)
    )
    q = np.rint(total.astype(np.float32) * scale) + y_zero.reshape(()).astype(np.float32)
    return saturate(q, x.dtype)


qlinear_global_average_pool.cost(lambda x, *_, **__: Cost(flops=x.size))
qlinear_global_average_pool.kernel(
    "cpu", "i8_global_pool", dtype="i8,u8", when=attr("channels_last", 0)
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
