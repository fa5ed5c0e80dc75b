"""QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear: between real numbers and integers.

real = (q − zero_point) · scale; q = clamp(round_half_even(real / scale) + zero_point), where
`rounding="litert"` takes the product with float32(1 / scale) for the quotient.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import DType, Integers, Node, TypeInfo
from ..ir.dtype import limits
from ._conditions import all_of, attr, constant, of_type
from ._core import define_op
from ._helpers import normalise_axis
from ._narrow import FORMATS, encode
from ._records import Cost
from ._samples import Draw, Sample
from ._scales import saturate
from .litert import LITERT

quantize_linear = define_op(
    "QuantizeLinear",
    transpose_rule="quantize",
    inputs="x scale zero_point?",
    attrs={
        "axis": 1,
        "block_size": 0,
        "output_dtype": None,
        "precision": 0,
        "saturate": 1,
        "rounding": "",
    },
    layout="axis",
    axis_attrs=("axis",),
    source="ONNX QuantizeLinear-25",
)
dequantize_linear = define_op(
    "DequantizeLinear",
    transpose_rule="quantize",
    inputs="x scale zero_point?",
    attrs={"axis": 1, "block_size": 0, "output_dtype": None},
    layout="axis",
    axis_attrs=("axis",),
    source="ONNX DequantizeLinear-25",
)


def spread(v: np.ndarray, shape: tuple[int, ...], axis: int, block_size: int) -> np.ndarray:
    """Scale or zero point made to broadcast against a tensor: per tensor, per axis, or blocked."""
    if v.size == 1:
        return v.reshape(())
    if v.ndim == 1:
        at = normalise_axis(axis, len(shape))
        if v.size != shape[at]:
            raise ShapeError(
                tr(
                    "expected a scale for each of the {shape} elements of axis {at}, found {size}",
                    size=v.size,
                    at=at,
                    shape=shape[at],
                )
            )
        return v.reshape([-1 if i == at else 1 for i in range(len(shape))])
    at = normalise_axis(axis, len(shape))
    block = block_size or -(-shape[at] // v.shape[at])
    return np.take(np.repeat(v, block, axis=at), range(shape[at]), axis=at)


@quantize_linear.infer
def _(x: TypeInfo, scale: TypeInfo, zero: TypeInfo | None, **attrs: Any) -> TypeInfo:
    stated = DType.U8 if zero is None else zero.dtype
    return TypeInfo(attrs["output_dtype"] or stated, x.shape)


@quantize_linear.reference
def _(x: np.ndarray, scale: np.ndarray, zero_point: np.ndarray | None, **attrs: Any) -> np.ndarray:
    """q = clamp(round_half_even(x / scale) + zero_point); floats of 8 and 4 bits keep fractions and
    have no zero point"""
    dtype = attrs["output_dtype"] or (DType.U8 if zero_point is None else DType.of(zero_point))
    axis, block_size = attrs["axis"], attrs["block_size"]
    work = np.float64 if x.dtype.kind in "iu" or x.dtype == np.float64 else np.float32
    by: np.ndarray[Any, Any] = spread(scale, x.shape, axis, block_size).astype(work)
    if attrs["rounding"] == LITERT:
        q = x.astype(work) * (1 / by).astype(work)
    else:
        q = x.astype(work) / by
    if dtype in FORMATS:
        return encode(q, dtype, saturate=bool(attrs["saturate"]))
    q = np.rint(q)
    if zero_point is not None:
        q = q + spread(zero_point, x.shape, axis, block_size).astype(work)
    return np.clip(q, *limits(dtype)).astype(dtype.np)


@dequantize_linear.infer
def _(x: TypeInfo, scale: TypeInfo, *_: Any, output_dtype: DType | None, **__: Any) -> TypeInfo:
    return TypeInfo(output_dtype or scale.dtype, x.shape)


@dequantize_linear.reference
def _(x: np.ndarray, scale: np.ndarray, zero_point: np.ndarray | None, **attrs: Any) -> np.ndarray:
    """y = (x − zero_point) · scale"""
    axis, block_size = attrs["axis"], attrs["block_size"]
    wide = x.astype(np.int32) if x.dtype.kind in "iu" else x
    if zero_point is not None:
        wide = wide - spread(zero_point, x.shape, axis, block_size).astype(wide.dtype)
    s = spread(scale, x.shape, axis, block_size)
    dtype = attrs["output_dtype"]
    out = scale.dtype if dtype is None else np.float32 if dtype is DType.BF16 else dtype.np
    return (wide.astype(np.result_type(s, np.float32)) * s).astype(out)


def stored_integers(node: Node) -> Integers | None:
    """What a DequantizeLinear makes its real numbers of, where these are constants: integers of 8
    or 16 bits with float32 scales for the whole or along an axis, and no zero point."""
    if node.op != "DequantizeLinear" or node.attrs.get("block_size"):
        return None
    q, scale, zero = (None if v is None else v.const for v in map(node.input, range(3)))
    if q is None or scale is None or q.dtype not in (np.int8, np.int16) or q.ndim == 0:
        return None
    if scale.dtype != np.float32 or scale.ndim > 1 or node.attrs.get("output_dtype"):
        return None
    if node.input(2) is not None and (zero is None or zero.any()):
        return None
    axis = normalise_axis(node.attrs.get("axis", 1), q.ndim) if scale.size > 1 else 0
    return Integers(q, scale.reshape(-1), axis)


quantize_linear.cost(lambda x, *_, **__: Cost(flops=4 * x.size))
dequantize_linear.cost(lambda x, *_, **__: Cost(flops=2 * x.size))


def _whole_axes(node: Node, types: list[TypeInfo | None]) -> bool | str:
    scale = types[1]
    return (scale is not None and scale.rank <= 1) or tr("its scales are for blocks")


def _to_small(node: Node, types: list[TypeInfo | None]) -> bool | str:
    dtype = node.output.dtype
    small = (DType.I8, DType.U8, DType.I16, DType.U16)
    return dtype in small or tr("its output is {dtype}", dtype=dtype)


def _no_negative_scale(node: Node, types: list[TypeInfo | None]) -> bool | str:
    """Kernels clip to bounds that a negative scale would turn around."""
    known = types[1].const if types[1] is not None else None
    return known is None or not (np.asarray(known) < 0).any() or tr("its scale is negative")


_plain_scales = (of_type(1), attr("block_size", 0), _whole_axes)
quantize_linear.kernel(
    "cpu", "any_quantize", when=all_of(*_plain_scales, _to_small, _no_negative_scale)
)
dequantize_linear.kernel(
    "cpu",
    "any_quantize",
    dtype="i8,u8,i16,u16,i32",
    when=all_of(*_plain_scales, attr("output_dtype", None, DType.F32)),
)
quantize_linear.kernel(
    "opencl",
    "quantize",
    dtype="f32,f16",
    when=all_of(*_plain_scales, _to_small, constant(1, 2), _no_negative_scale),
)
dequantize_linear.kernel(
    "opencl",
    "quantize",
    dtype="i8,u8,i16,u16,i32",
    when=all_of(*_plain_scales, attr("output_dtype", None, DType.F32), constant(1, 2)),
)

dynamic_quantize_linear = define_op(
    "DynamicQuantizeLinear",
    inputs="x",
    outputs="y y_scale y_zero_point",
    source="ONNX DynamicQuantizeLinear-11",
)
dynamic_quantize_linear.infer(
    lambda x: [TypeInfo(DType.U8, x.shape), TypeInfo(DType.F32, ()), TypeInfo(DType.U8, ())]
)


@dynamic_quantize_linear.reference
def dynamic_quantize(x: np.ndarray) -> Any:
    """u8 over the range of x and 0: scale = (max − min)/255, zero_point = round(−min/scale)"""
    low = np.minimum(x.min(initial=0), 0).astype(np.float32)
    high = np.maximum(x.max(initial=0), 0).astype(np.float32)
    scale = np.float32((high - low) / np.float32(255))
    scale = scale if scale > 0 else np.float32(1)
    zero_point = saturate(np.rint(-low / scale), np.dtype(np.uint8))
    q = saturate(np.rint(x / scale) + np.float32(zero_point), np.dtype(np.uint8))
    return q, scale, zero_point


dynamic_quantize_linear.cost(lambda x: Cost(flops=6 * x.size))


@quantize_linear.samples
def _(draw: Draw) -> Iterator[Sample]:
    for dtype in (np.int8, np.uint8, np.int16, np.uint16):
        for shape in ((1,), (3, 17), (2, 5, 3, 4)):
            for scale in (1.0, 0.37):
                parameters = [draw.scalar(scale, np.float32), draw.scalar(3, dtype)]
                for rounding in ("", LITERT):
                    inputs = [draw.f32(*shape, scale=30), *parameters]
                    yield Sample(inputs, {"rounding": rounding})
        for axis, dims in ((1, (2, 5, 3, 4)), (-1, (4, 5)), (0, (5,))):
            many = [np.abs(draw.f32(5)) + np.float32(0.1), draw.ints(0, 9, 5, dtype=dtype)]
            yield Sample([draw.f32(*dims, scale=30), *many], {"axis": axis})


@dequantize_linear.samples
def _(draw: Draw) -> Iterator[Sample]:
    for shape in ((1,), (3, 17), (2, 5, 3, 4)):
        zero = draw.scalar(0 if draw.dtype is DType.I32 else 3)
        yield Sample([draw(*shape), draw.scalar(0.37, np.float32), zero])
    for axis, dims in ((1, (2, 5, 3, 4)), (-1, (4, 5)), (0, (5,))):
        yield Sample([draw(*dims), np.abs(draw.f32(5)), draw(5)], {"axis": axis})
