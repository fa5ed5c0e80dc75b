"""Integer matrix products: QLinearMatMul, QGemm, MatMulInteger and their float-output forms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import DType, Node, TypeInfo
from . import litert16
from ._conditions import all_of, attr, byte_output, constant, of_type
from ._core import define_op
from ._records import Cost
from ._samples import Draw, Sample
from ._scales import Scale, per_axis, requantize, saturate, scales
from ._sparse import MULTIPLIES_ZEROS, SKIPS_ZEROS, words_of_zeros
from .matmul import matmul_macs, matmul_shape
from .quant_conv import INTEGER_GEMM
from .quantize import dynamic_quantize

Array = np.ndarray
_PARAMETERS = (
    "a_scale", "a_zero_point", "b_scale", "b_zero_point", "y_scale", "y_zero_point",
)  # fmt: skip


def _by_row(v: Array, rank: int) -> Array:
    """Parameters of the left matrix: one, or one per row."""
    if v.ndim <= 1:
        return per_axis(v, max(0, rank - 2), rank)
    return v if v.shape[-1] == 1 else v[..., None]


def _by_column(v: Array, rank: int) -> Array:
    """Parameters of the right matrix: one, or one per column."""
    return v if v.ndim > 1 else per_axis(v, rank - 1, rank)


def integer_matmul(a: Array, a_zero: Array | None, b: Array, b_zero: Array | None) -> Array:
    """Σ (a − a_zp)·(b − b_zp), exact → int64"""
    left, right = a.astype(np.float64), b.astype(np.float64)
    if a_zero is not None:
        left = left - _by_row(a_zero, a.ndim).astype(np.float64)
    if b_zero is not None:
        right = right - _by_column(b_zero, b.ndim).astype(np.float64)
    return np.rint(np.matmul(left, right)).astype(np.int64)


def _scaled_product(a: Array, of_a: Scale, b: Array, of_b: Scale) -> tuple[Array, Array]:
    """The exact sums, and what one of them is worth: a_s·b_s in float32."""
    acc = integer_matmul(a, of_a.zero, b, of_b.zero)
    left, right = _by_row(of_a.scale, acc.ndim), _by_column(of_b.scale, acc.ndim)
    return acc, left.astype(np.float32) * right.astype(np.float32)


def _real_product(a: Array, of_a: Scale, b: Array, of_b: Scale, bias: Array | None) -> Array:
    """acc · a_s·b_s + bias in float32"""
    acc, scale = _scaled_product(a, of_a, b, of_b)
    y = acc.astype(np.float32) * scale
    return y if bias is None else y + bias


qlinear_matmul = define_op(
    "QLinearMatMul",
    inputs="a a_scale a_zero_point b b_scale b_zero_point y_scale y_zero_point",
    attr_inputs=_PARAMETERS,
    source="ONNX QLinearMatMul-21",
    tolerance=0,
)


@qlinear_matmul.infer
def _(a: TypeInfo, a_scale: TypeInfo, a_zero: TypeInfo, b: TypeInfo, *rest: TypeInfo) -> TypeInfo:
    return TypeInfo(rest[-1].dtype, matmul_shape(a, b).shape)


@qlinear_matmul.reference
def _(a: Array, a_scale: Array, a_zero: Array, b: Array, *rest: Array) -> Array:
    """y = clamp(round(acc · a_s·b_s/y_s) + y_zp); a's parameters may be per row, b's per column"""
    of_b, of_y = scales(rest)
    if of_y.zero.dtype == np.int16:
        return _dense16(a, Scale(a_scale, a_zero), b, of_b, of_y, None)
    acc, scale = _scaled_product(a, Scale(a_scale, a_zero), b, of_b)
    return _requantized(acc, scale, of_y)


def _dense16(
    a: Array, of_a: Scale, b: Array, of_b: Scale, of_y: Scale, bias: Array | None
) -> Array:
    """With activations of 16 bits, as LiteRT's dense layers round"""
    acc = integer_matmul(a, of_a.zero, b, of_b.zero)
    acc = acc if bias is None else acc + bias
    scaled = (of_a.scale.reshape(()), _by_column(of_b.scale, acc.ndim), of_y.scale.reshape(()))
    return saturate(litert16.dense(acc, *scaled, bias=bias is not None), of_y.zero.dtype)


def _requantized(acc: Array, scale: Array, of_y: Scale) -> Array:
    y_scale = of_y.scale.reshape(()).astype(np.float32)
    return requantize(acc, scale / y_scale, of_y.zero.reshape(()))


@qlinear_matmul.cost
def _(a: TypeInfo, a_scale: TypeInfo, a_zero: TypeInfo, b: TypeInfo, *_: Any) -> Cost:
    return Cost(macs=matmul_macs(a, b), flops=4 * matmul_shape(a, b).size)


qgemm = define_op(
    "QGemm",
    inputs="a a_scale a_zero_point b b_scale b_zero_point c? y_scale? y_zero_point?",
    attrs={"alpha": 1.0, "transA": 0, "transB": 0},
    attr_inputs=_PARAMETERS,
    source="com.microsoft QGemm-1",
    tolerance=0,
)


def _oriented(a: Any, b: Any, trans_a: int, trans_b: int) -> tuple[Any, Any]:
    """Both matrices after transposing (types or arrays)."""
    if isinstance(a, TypeInfo):
        if a.rank != 2 or b.rank != 2:
            raise ShapeError(
                tr(
                    "expected two inputs of rank 2, found {rank} and {other}",
                    rank=a.rank,
                    other=b.rank,
                )
            )
        return (
            a.with_shape(a.dims[::-1]) if trans_a else a,
            b.with_shape(b.dims[::-1]) if trans_b else b,
        )
    return a.T if trans_a else a, b.T if trans_b else b


@qgemm.infer
def _(
    a: TypeInfo, a_scale: TypeInfo, a_zero: TypeInfo, b: TypeInfo, *rest: TypeInfo | None,
    transA: int, transB: int, **_: Any,
) -> TypeInfo:  # fmt: skip
    left, right = _oriented(a, b, transA, transB)
    y_zero = rest[-1]
    return TypeInfo(DType.F32 if y_zero is None else y_zero.dtype, matmul_shape(left, right).shape)


@qgemm.reference
def _(
    a: Array, a_scale: Array, a_zero: Array, b: Array, *rest: Any,
    alpha: float, transA: int, transB: int,
) -> Array:  # fmt: skip
    """acc = (A − a_zp)·(B − b_zp) + c, c int32 of scale α·a_s·b_s; float output without y_scale"""
    b_scale, b_zero, c, y_scale, y_zero = rest
    left, right = _oriented(a, b, transA, transB)
    of_a = Scale(np.float32(alpha) * a_scale, a_zero)
    if y_zero is not None and y_zero.dtype == np.int16:
        of_y = Scale(y_scale, y_zero)
        return _dense16(left, of_a, right, Scale(b_scale, b_zero), of_y, c)
    acc, scale = _scaled_product(left, of_a, right, Scale(b_scale, b_zero))
    acc = acc if c is None else acc + c
    if y_scale is None or y_zero is None:
        return acc.astype(np.float32) * scale
    return _requantized(acc, scale, Scale(y_scale, y_zero))


@qgemm.cost
def _(
    a: TypeInfo, a_scale: TypeInfo, a_zero: TypeInfo, b: TypeInfo, *_: Any,
    transA: int, transB: int, **__: Any,
) -> Cost:  # fmt: skip
    left, right = _oriented(a, b, transA, transB)
    return Cost(macs=matmul_macs(left, right), flops=4 * matmul_shape(left, right).size)


def _matrix(node: Node, types: list[TypeInfo | None]) -> bool | str:
    a, b = types[0], types[3]
    if a is None or a.rank < 2:
        return tr("a is a vector")
    return (b is not None and b.rank == 2) or tr("b is a batch of matrices")


def _one_scale(node: Node, types: list[TypeInfo | None]) -> bool | str:
    a = types[1]
    return (a is not None and a.is_static and a.size == 1) or tr("a has a scale per row")


#: Everything but a is constant.
_FIXED = constant(1, 2, 3, 4, 5, 6, 7, 8)
_KERNEL = all_of(INTEGER_GEMM, _matrix, _one_scale)
_PLAIN = all_of(_KERNEL, attr("transA", 0), attr("alpha", 1.0))
for _backend in ("cpu", "opencl"):
    for _op, _when in ((qlinear_matmul, _KERNEL), (qgemm, _PLAIN)):
        _op.kernel(
            _backend, "i8_gemm", dtype="i8,u8", when=_when, why=tr("integer matrix product")
        )  # fmt: skip
for _op, _when in ((qlinear_matmul, _KERNEL), (qgemm, _PLAIN)):
    for _name, _why in (("i8_gemm_sparse", SKIPS_ZEROS), ("i8_gemm_dense", MULTIPLIES_ZEROS)):
        _op.kernel(
            "cpu", _name, dtype="i8,u8", rank=4, when=all_of(_when, words_of_zeros), why=_why,
        )  # fmt: skip


def _by_columns(node: Node, types: list[TypeInfo | None]) -> bool | str:
    """b's parameters: one, or one per column."""
    fits = all(t is None or t.rank <= 1 for t in (types[4], types[5]))
    return fits or tr("b has a scale per row")


def _matrices(node: Node, types: list[TypeInfo | None]) -> bool | str:
    a, b = types[0], types[3]
    return (a is not None and b is not None and min(a.rank, b.rank) >= 2) or tr("b is a vector")


qlinear_matmul.kernel(
    "cpu", "i8_matmul", dtype="i8,u8", rank=2, why=tr("integer product of two computed matrices"),
    when=all_of(constant(1, 2, 4, 5, 6, 7), of_type(3, dtype="i8,u8"), byte_output, _matrices,
                _one_scale, _by_columns),
)  # fmt: skip
for _op, _output in ((qlinear_matmul, 7), (qgemm, 8)):
    _op.kernel(
        "cpu", "i16_gemm", dtype="i16", why=tr("16-bit matrix product"),
        when=all_of(_FIXED, of_type(3, dtype="i8"), of_type(_output, dtype="i16"), _matrix,
                    _one_scale, attr("transA", 0) if _op is qgemm else all_of()),
    )  # fmt: skip


matmul_integer = define_op(
    "MatMulInteger",
    inputs="a b a_zero_point? b_zero_point?",
    source="ONNX MatMulInteger-10",
    tolerance=0,
)
matmul_integer.infer(lambda a, b, *_: TypeInfo(DType.I32, matmul_shape(a, b).shape))


@matmul_integer.reference
def _(a: Array, b: Array, a_zero: Array | None, b_zero: Array | None) -> Array:
    """Σ (a − a_zp)·(b − b_zp) as int32"""
    return integer_matmul(a, a_zero, b, b_zero).astype(np.int32)


matmul_integer.cost(lambda a, b, *_: Cost(macs=matmul_macs(a, b)))

matmul_integer_to_float = define_op(
    "MatMulIntegerToFloat",
    inputs="a b a_scale b_scale a_zero_point? b_zero_point? bias?",
    source="com.microsoft MatMulIntegerToFloat-1",
)
matmul_integer_to_float.infer(
    lambda a, b, a_scale, *_: TypeInfo(a_scale.dtype, matmul_shape(a, b).shape)
)


@matmul_integer_to_float.reference
def _(
    a: Array,
    b: Array,
    a_scale: Array,
    b_scale: Array,
    a_zero: Array | None,
    b_zero: Array | None,
    bias: Array | None,
) -> Array:
    """y = acc · a_s·b_s + bias"""
    y = _real_product(a, Scale(a_scale, a_zero), b, Scale(b_scale, b_zero), bias)
    return y.astype(a_scale.dtype)


matmul_integer_to_float.cost(lambda a, b, *_: Cost(macs=matmul_macs(a, b)))

dynamic_quantize_matmul = define_op(
    "DynamicQuantizeMatMul",
    inputs="a b b_scale b_zero_point? bias?",
    source="com.microsoft DynamicQuantizeMatMul-1",
)
dynamic_quantize_matmul.infer(lambda a, b, *_: matmul_shape(a, b))


@dynamic_quantize_matmul.reference
def _(a: Array, b: Array, b_scale: Array, b_zero: Array | None, bias: Array | None) -> Array:
    """a is quantised to u8 over its own range, then multiplied as integers"""
    q, scale, zero = dynamic_quantize(a)
    of_a = Scale(np.asarray(scale), np.asarray(zero))
    return _real_product(q, of_a, b, Scale(b_scale, b_zero), bias).astype(np.float32)


dynamic_quantize_matmul.cost(lambda a, b, *_: Cost(macs=matmul_macs(a, b), flops=6 * a.size))


def _byte_products(draw: Draw, trans_b: bool = False) -> Iterator[list[Array]]:
    """Inputs up to b's zero point, then those of y: rows and columns around a tile."""
    for m, k, n in ((1, 5, 3), (7, 33, 16), (9, 64, 17), (40, 19, 65), (35, 38, 41)):
        shape = (n, k) if trans_b else (k, n)
        b = draw.ints(-128, 128, *shape, dtype=np.int8)
        if m == 35:  # few that are not 0
            b *= draw.ints(0, 9, *shape) == 0
        yield [
            draw.full(m, k), draw.scalar(0.03, np.float32), draw.zero_point(4),
            b, draw.scalar(0.02, np.float32), np.array(0, np.int8),
            draw.scalar(0.02 * k**0.5, np.float32), draw.zero_point(5),
        ]  # fmt: skip


@qlinear_matmul.samples
def _(draw: Draw) -> Iterator[Sample]:
    for inputs in _byte_products(draw):
        yield Sample(inputs, constant=tuple(range(1, 8)))
        yield Sample(inputs, constant=(1, 2, 4, 5, 6, 7))  # of two computed matrices


@qgemm.samples
def _(draw: Draw) -> Iterator[Sample]:
    for trans_b in (0, 1):
        for inputs in _byte_products(draw, bool(trans_b)):
            columns = inputs[3].shape[0 if trans_b else 1]
            c = draw.ints(-900, 900, columns, dtype=np.int32)
            given = [*inputs[:6], c, *inputs[6:]]
            yield Sample(given, {"transB": trans_b}, constant=tuple(range(1, 9)))
