"""Quantized elementwise, pooling and joining operators: dequantise, compute, quantise.

Everything is defined so that any order of summation gives the same integers: functions of one
number in float64, sums over windows and series as integers.

Source: com.microsoft operators of onnxruntime (ContribOperators.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from lite_messages import tr

from ..ir import DType, Node, TypeInfo
from . import litert16
from ._conditions import Condition, all_of, attr, constant, of_type, separate_axes
from ._core import OpDef, define_op, get_op
from ._helpers import broadcast_shapes, product
from ._records import Cost
from ._samples import Draw, Sample
from ._scales import Scale, saturate, scales
from .join_split import concat
from .litert import LITERT, added, map_mean, mean, multiplied
from .pool import average_pool, flat_pool, window_sums

Array = np.ndarray


def _binary(
    name: str,
    fn: Callable[[Array, Array], Array],
    of_litert: Callable[..., Array],
    source: str,
    opencl: str,
) -> OpDef:
    """`of_litert(a, its Scale, b, its Scale, Scale of y)` is the answer with that rounding."""
    op = define_op(
        name,
        inputs="a a_scale a_zero_point? b b_scale b_zero_point? y_scale y_zero_point?",
        attrs={"rounding": ""},
        layout="elementwise",
        source=source,
        tolerance=0,
    )
    op.infer(lambda a, a_s, a_z, b, *_, **__: TypeInfo(a.dtype, broadcast_shapes(a.shape, b.shape)))

    @op.reference
    def _(
        a: Array, a_scale: Array, a_zero: Array | None, b: Array, *rest: Any, rounding: str
    ) -> Array:
        of_a, (of_b, of_y) = Scale(a_scale, a_zero), scales(rest)
        if rounding == LITERT:
            return of_litert(a, of_a, b, of_b, of_y)
        return of_y.quantized(fn(of_a.real(a), of_b.real(b)), a.dtype)

    op.cost(
        lambda a, a_s, a_z, b, *_, **__: Cost(
            flops=8 * product(broadcast_shapes(a.shape, b.shape) or ())
        )
    )
    op.kernel("cpu", "i8_binary", dtype="i8,u8", accepts_pitch=True)
    sixteen = all_of(constant(1, 2, 4, 5, 6, 7), attr("rounding", LITERT))
    op.kernel("cpu", "i16_binary", dtype="i16", accepts_pitch=True, when=sixteen)
    fixed = all_of(constant(1, 2, 4, 5, 6, 7), separate_axes)
    op.kernel("opencl", "i8_binary", dtype="i8,u8", when=fixed, code=opencl)
    return op


_binary("QLinearAdd", np.add, partial(added, sign=1), "com.microsoft QLinearAdd-1", "((p)+(q))")
_binary(
    "QLinearSub",
    np.subtract,
    partial(added, sign=-1),
    "own: QLinearAdd's rule for Sub",
    "((p)-(q))",
)
_binary("QLinearMul", np.multiply, multiplied, "com.microsoft QLinearMul-1", "((p)*(q))")


def _one_input(
    name: str, layout: str, flops: int, kernel: str, *conditions: Condition, **attrs: Any
) -> OpDef:
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
    op.kernel("opencl", kernel, dtype="i8,u8", when=all_of(constant(1, 2, 3, 4), *conditions))
    return op


def _table(name: str, fn: Callable[..., Array], flops: int, **attrs: Any) -> None:
    op = _one_input(name, "elementwise", flops, "i8_table", **attrs)

    @op.reference
    def _(x: Array, *parameters: Any, **attrs: Any) -> Array:
        of_x, of_y = scales(parameters)
        y = fn(of_x.shifted(x) * float(of_x.scale.reshape(())), **attrs)
        return of_y.quantized(y, x.dtype)


_table(
    "QLinearLeakyRelu",
    lambda x, alpha: np.where(x < 0, float(np.float32(alpha)) * x, x),
    6,
    alpha=0.01,
)
_table("QLinearSigmoid", lambda x: 1 / (1 + np.exp(-x)), 14)


def _no_tiny_scale(node: Node, types: list[TypeInfo | None]) -> bool | str:
    """Its thresholds fit 128 bits."""
    scale = types[3]
    known = None if scale is None else scale.const
    good = known is not None and float(known.min(initial=1)) > 2**-40
    return good or tr("its y_scale is tiny")


qlinear_softmax = _one_input(
    "QLinearSoftmax", "axis", 16, "i8_softmax", _no_tiny_scale, axis=-1, opset=13
)

qlinear_softmax.kernel("cpu", "i16_softmax", dtype="i16", when=constant(1, 2, 3, 4))


@qlinear_softmax.reference
def _(x: Array, *parameters: Any, axis: int, opset: int) -> Array:
    """e = round(2^30 exp((x − max)·x_scale)) as integers; y = e / Σ e in float64"""
    of_x, of_y = scales(parameters)
    if x.dtype == np.int16:
        last = litert16.softmax(np.moveaxis(x, axis, -1), float(of_x.scale.reshape(())))
        return np.moveaxis(last, -1, axis).astype(np.int16)
    below = x.astype(np.int32) - x.max(axis, keepdims=True, initial=np.iinfo(x.dtype).min)
    e = np.rint(np.exp(below * float(of_x.scale.reshape(()))) * 2**30).astype(np.int64)
    return of_y.quantized(e / e.sum(axis, keepdims=True), x.dtype)


# ---- pooling

qlinear_average_pool = define_op(
    "QLinearAveragePool",
    inputs="x x_scale x_zero_point? y_scale y_zero_point?",
    attrs={**average_pool.attrs, "channels_last": 0, "rounding": ""},
    layout="channels_last",
    source="com.microsoft QLinearAveragePool-1",
    tolerance=0,
)


@qlinear_average_pool.infer
def _(x: TypeInfo, *_: Any, channels_last: int, rounding: str, **attrs: Any) -> TypeInfo:
    assert average_pool._infer is not None
    out = average_pool._infer(x, **attrs)
    assert isinstance(out, TypeInfo)
    return out


@qlinear_average_pool.reference
def _(x: Array, *parameters: Any, channels_last: int, rounding: str, **attrs: Any) -> Array:
    """AveragePool of the real values, summed as integers; LiteRT's takes the integers as they are,
    whose scale and zero point are those of y"""
    of_x, of_y = scales(parameters)
    include = int(attrs.pop("count_include_pad"))
    if rounding == LITERT:
        return saturate(mean(*window_sums(x.astype(np.int64), include, attrs)), x.dtype)
    total, count = window_sums(of_x.shifted(x, np.int64), include, attrs)
    return _mean(total, count, of_x, of_y, x.dtype)


def _mean(total: Array, count: Any, of_x: Scale, of_y: Scale, dtype: np.dtype) -> Array:
    """clamp(round(float32(total) · x_scale / (y_scale · count)) + zero_point), float32"""
    below = of_y.scale.reshape(()).astype(np.float32) * np.asarray(count, np.float32)
    ratio = of_x.scale.reshape(()).astype(np.float32) / below
    zero = 0 if of_y.zero is None else of_y.zero.reshape(()).astype(np.float32)
    return saturate(np.rint(total.astype(np.float32) * ratio) + zero, dtype)


@qlinear_average_pool.cost
def _(x: TypeInfo, *_: Any, channels_last: int, rounding: str, **attrs: Any) -> Cost:
    assert average_pool._cost is not None
    return average_pool._cost(x, **attrs)


qlinear_global_average_pool = define_op(
    "QLinearGlobalAveragePool",
    inputs="x x_scale x_zero_point y_scale y_zero_point",
    attrs={"channels_last": 0, "rounding": ""},
    layout="channels_last",
    source="com.microsoft QLinearGlobalAveragePool-1",
    tolerance=0,
)
qlinear_global_average_pool.infer(
    lambda x, *_, **__: x.with_shape((*x.dims[:2], *[1] * (x.rank - 2)))
)


@qlinear_global_average_pool.reference
def _(x: Array, *parameters: Any, channels_last: int, rounding: str) -> Array:
    """Mean over the spatial axes, summed as integers"""
    (of_x, of_y), spatial = scales(parameters), tuple(range(2, x.ndim))
    if rounding == LITERT:
        total = x.astype(np.int64).sum(spatial, keepdims=True)
        return map_mean(total, x.size // max(1, total.size), of_x, of_y, x.dtype)
    total = of_x.shifted(x, np.int64).sum(spatial, keepdims=True)
    return _mean(total, x.size // max(1, total.size), of_x, of_y, x.dtype)


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
    _op.kernel(
        "cpu", "i16_pool", dtype="i16", accepts_pitch=True, accepts_halo=True,
        when=all_of(
            attr("channels_last", 0), flat_pool, constant(1, 2, 3, 4), attr("rounding", LITERT)
        ),
    )  # fmt: skip
    _op.kernel(
        "opencl", "i8_pool", dtype="i8,u8",
        when=all_of(attr("channels_last", 0), flat_pool, constant(1, 2, 3, 4)),
    )  # fmt: skip

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
    of_y = Scale(y_scale, y_zero)
    parts = [
        x if float(s) == float(y_scale) and int(z) == int(y_zero) and x.dtype == y_zero.dtype
        else of_y.quantized(Scale(s, z).real(x), y_zero.dtype)
        for x, s, z in zip(xs[::3], xs[1::3], xs[2::3])
    ]  # fmt: skip
    return np.concatenate(parts, axis)


def _fixed_scales(node: Node, types: list[TypeInfo | None]) -> bool | str:
    """All but the joined tensors are constants, and those are bytes."""
    parts = range(2, len(types), 3)
    if any(t is None or not t.is_const for i, t in enumerate(types) if i not in parts):
        return tr("a scale is computed")
    return of_type(*parts, dtype="i8,u8")(node, types)


qlinear_concat.kernel("cpu", "i8_concat", when=_fixed_scales)
qlinear_concat.kernel("opencl", "i8_concat", when=_fixed_scales)

# ---- sample calls


def _binary_samples(draw: Draw) -> Iterator[Sample]:
    for a, b in (
        ((3, 700), (3, 700)), ((2, 5, 7), (7,)), ((4, 9), (1,)), ((7,), (90, 7)),
        ((1, 30, 24), (1, 1, 24)), ((1, 5, 6, 7), (1, 5, 6, 7)),
    ):  # fmt: skip
        x, x_scale, x_zero, y_scale, y_zero = draw.scaled(*a, y_scale=0.11)
        other = [draw.full(*b), draw.scalar(0.07, np.float32), draw.zero_point(1)]
        constant = (1, 2, 4, 5, 6, 7)
        for rounding in ("", LITERT):
            inputs = [x, x_scale, x_zero, *other, y_scale, y_zero]
            yield Sample(inputs, {"rounding": rounding}, constant=constant)


def _scaled_rows(draw: Draw) -> Iterator[Sample]:
    for shape in ((1,), (7,), (16,), (2, 3, 5, 19), (4, 64)):
        for x_scale in (1 / 256, 0.013):
            inputs = draw.scaled(*shape, x_scale=x_scale, y_scale=1 / 256)
            yield Sample(inputs, constant=(1, 2, 3, 4))


def _scaled_images(draw: Draw) -> Iterator[Sample]:
    for shape in ((1, 3, 7, 7), (2, 67, 3, 5), (1, 16, 9, 4)):
        yield Sample(draw.scaled(*shape), constant=(1, 2, 3, 4))


for _name in ("QLinearAdd", "QLinearSub", "QLinearMul"):
    get_op(_name).samples(_binary_samples)
for _name in ("QLinearLeakyRelu", "QLinearSigmoid"):
    get_op(_name).samples(_scaled_rows)


@qlinear_global_average_pool.samples
def _(draw: Draw) -> Iterator[Sample]:
    for sample in _scaled_images(draw):
        for rounding in ("", LITERT):
            yield Sample(sample.inputs, {"rounding": rounding}, constant=sample.constant)


@qlinear_softmax.samples
def _(draw: Draw) -> Iterator[Sample]:
    for shape, axis in (((3, 10), -1), ((1, 1001), 1), ((2, 5, 7), 1), ((4, 1), 0)):
        inputs = draw.scaled(*shape, x_scale=0.1, y_scale=1 / 256)
        yield Sample(inputs, {"axis": axis}, constant=(1, 2, 3, 4))


@qlinear_average_pool.samples
def _(draw: Draw) -> Iterator[Sample]:
    for sample in _scaled_images(draw):
        for attrs in (
            {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]},
            {"kernel_shape": [2, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"},
            {"kernel_shape": [3, 2], "strides": [2, 1], "ceil_mode": 1, "pads": [1, 0, 0, 1]},
        ):
            for include in (0, 1):
                more = {**attrs, "count_include_pad": include}
                yield Sample(sample.inputs, more, constant=sample.constant)
            more = {**attrs, "rounding": LITERT}
            inputs = [*sample.inputs[:3], *sample.inputs[1:3]]
            yield Sample(inputs, more, constant=sample.constant)


@qlinear_concat.samples
def _(draw: Draw) -> Iterator[Sample]:
    for dtype in (DType.I8, DType.U8):
        of_bytes = Draw(dtype, f"QLinearConcat {dtype}")
        for axis, sizes in ((1, (3, 1, 6)), (-1, (300, 2)), (0, (2, 2))):
            inputs = [draw.scalar(0.04, np.float32), of_bytes.scalar(3)]
            for i, size in enumerate(sizes):
                shape = [2, 3, 5]
                shape[axis] = size
                scale = draw.scalar(0.02 * (i + 1), np.float32)
                inputs += [of_bytes.full(*shape), scale, of_bytes.scalar(3 * i)]
            constant = tuple(i for i in range(len(inputs)) if i < 2 or i % 3 != 2)
            yield Sample(inputs, {"axis": axis}, constant=constant)
