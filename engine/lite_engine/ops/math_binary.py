"""Elementwise functions of two or more inputs, with NumPy broadcasting."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from types import MappingProxyType
from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import DType, Node, TypeInfo
from ._conditions import Condition, all_of, separate_axes
from ._core import OpDef, define_op
from ._helpers import (
    COUNTED,
    NUMBERS,
    bool_type,
    broadcast_shapes,
    check_word,
    float_kernels,
    product,
)
from ._records import Cost
from ._samples import Draw, Sample
from .activation import FUSED, apply_activation

_INTEGERS = "i8,u8,i16,u16,i32,u32,i64"


def _alike(node: Node, types: list[TypeInfo | None]) -> bool | str:
    kinds = {t.dtype for t in types if t is not None}
    return len(kinds) == 1 or tr("the operands differ in type")


def _plain(node: Node, types: list[TypeInfo | None]) -> bool | str:
    return not node.attrs.get("activation") or tr("it has a fused activation")


def _broadcast_type(*xs: TypeInfo, **_: Any) -> TypeInfo:
    """Raises ShapeError for operands of different types: no ONNX operator promotes."""
    different = [x for x in xs if x.dtype is not xs[0].dtype]
    if different:
        raise ShapeError(
            tr(
                "the operands have different types, {one} and {other}",
                one=xs[0].dtype,
                other=different[0].dtype,
            ),
            fix=tr("cast one of them"),
        )
    return TypeInfo(xs[0].dtype, broadcast_shapes(*(x.shape for x in xs)))


def _broadcast_cost(*xs: TypeInfo, **_: Any) -> Cost:
    return Cost(flops=product(broadcast_shapes(*(x.shape for x in xs)) or ()) * max(1, len(xs) - 1))


def _binary(
    name: str,
    fn: Callable[..., Any],
    source: str,
    *,
    opencl: str = "",
    counted: str = NUMBERS,
    properties: Mapping[str, Any] = MappingProxyType({}),
    **attrs: Any,
) -> OpDef:
    """y = fn(a, b). `opencl` is the function as an expression of p and q, where it has kernels of
    floats; `counted` are the element types that the portable kernel takes."""
    op = define_op(
        name, inputs="a b", attrs=attrs, layout="elementwise", source=source, **properties
    )
    op.infer(_broadcast_type)
    op.reference(fn)
    op.cost(_broadcast_cost)
    if opencl:
        _of_floats(op, _alike, opencl)
    if counted:
        op.kernel("cpu", "any_binary", dtype=counted, accepts_pitch=True, rank=1, when=_plain)
    return op


def _logic(name: str, fn: Callable[..., Any], source: str, *, opencl: str) -> None:
    """y = fn(a, b) of truths; `opencl` as an expression of p and q."""
    op = _binary(name, fn, source, counted="bool")
    op.kernel("opencl", "judge", dtype="bool", when=separate_axes, code=opencl)


def _of_floats(op: OpDef, when: Condition, opencl: str) -> None:
    float_kernels(op, "binary", accepts_pitch=True, in_place=True, when=when)
    device = all_of(when, separate_axes)
    op.kernel("opencl", "binary", dtype="f32,f16", when=device, code=opencl)


def _compare(name: str, fn: Callable[..., Any], source: str, opencl: str) -> OpDef:
    """y = fn(a, b), a truth; on a device of integers, which half precision does not round."""
    op = define_op(name, inputs="a b", layout="elementwise", source=source)
    op.infer(bool_type)
    op.reference(fn)
    op.cost(_broadcast_cost)
    op.kernel("cpu", "any_binary", dtype=COUNTED, accepts_pitch=True)
    op.kernel("opencl", "judge", dtype=f"{_INTEGERS},bool", when=separate_axes, code=opencl)
    return op


# ---- arithmetic


def _add(
    a: np.ndarray, b: np.ndarray, *, activation: str, activation_params: Sequence[float]
) -> np.ndarray:
    """y = activation(a + b)"""
    return apply_activation(activation, activation_params, a + b).astype(a.dtype, copy=False)


def _div(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """y = a / b; integers are divided towards zero"""
    if a.dtype.kind == "f":
        return a / b
    safe = np.where(b == 0, 1, b)
    down = a // safe
    return down + ((a % safe != 0) & ((a < 0) != (safe < 0)))


def _mod(a: np.ndarray, b: np.ndarray, *, fmod: int) -> np.ndarray:
    """y = a mod b with the sign of b, or of a when fmod = 1"""
    return np.fmod(a, b) if fmod else np.mod(a, b)


def _pow(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """y = a^b in a's element type; of integers towards zero, and 0 where a = 0 and b < 0"""
    if a.dtype.kind in "iu" and b.dtype.kind in "iu":
        whole = np.power(a, np.abs(b).astype(np.int64))
        return np.where((b >= 0) | (np.abs(a) == 1), whole, 0).astype(a.dtype)
    return np.power(a, b.astype(np.float64) if b.dtype.kind in "iu" else b).astype(a.dtype)


def _shift(a: np.ndarray, b: np.ndarray, *, direction: str) -> np.ndarray:
    """y = a shifted by b bits, LEFT or RIGHT"""
    return np.left_shift(a, b) if direction == "LEFT" else np.right_shift(a, b)


_SUM_OR_PRODUCT = {"commutative": True, "integer_form": "binary", "quantized": "joins"}
_binary(
    "Add", _add, "ONNX Add-14; activation is ours", opencl="((p)+(q))",
    properties={**_SUM_OR_PRODUCT, "carries": slice(2)}, **FUSED,
)  # fmt: skip
_binary(
    "Sub", np.subtract, "ONNX Sub-14", opencl="((p)-(q))",
    properties={"integer_form": "binary", "carries": slice(2)},
)  # fmt: skip
_binary("Mul", np.multiply, "ONNX Mul-14", opencl="((p)*(q))", properties=_SUM_OR_PRODUCT)
_binary("Div", _div, "ONNX Div-14", opencl="((p)/(q))")
_binary("Pow", _pow, "ONNX Pow-15", opencl="pow(p,q)").infer(
    lambda a, b: TypeInfo(a.dtype, broadcast_shapes(a.shape, b.shape))  # types may differ
)
_mod_op = _binary("Mod", _mod, "ONNX Mod-13; fmod = 0 of floats is ours", fmod=0)
float_kernels(_mod_op, "binary", accepts_pitch=True, in_place=True, when=_alike)
_binary(
    "Atan2",
    np.arctan2,
    "TFLite ATAN2: y = angle of the point (b, a)",
    opencl="atan2(p,q)",
    counted="",
)
_logic("And", np.logical_and, "ONNX And-7", opencl="((p)!=0?(q)!=0:0)")
_logic("Or", np.logical_or, "ONNX Or-7", opencl="((p)!=0?1:(q)!=0)")
_logic("Xor", np.logical_xor, "ONNX Xor-7", opencl="(((p)!=0)!=((q)!=0))")
_binary("BitwiseAnd", np.bitwise_and, "ONNX BitwiseAnd-18", counted=_INTEGERS)
_binary("BitwiseOr", np.bitwise_or, "ONNX BitwiseOr-18", counted=_INTEGERS)
_binary("BitwiseXor", np.bitwise_xor, "ONNX BitwiseXor-18", counted=_INTEGERS)
# signed shifts drag the sign along in NumPy, and do not in the kernel
_bit_shift = _binary("BitShift", _shift, "ONNX BitShift-11", counted="u8,u16,u32", direction="LEFT")


@_bit_shift.infer
def _(a: TypeInfo, b: TypeInfo, *, direction: str) -> TypeInfo:
    check_word("direction", direction, "LEFT", "RIGHT")
    return _broadcast_type(a, b)


_binary(
    "SquaredDifference",
    lambda a, b: np.square(a - b),
    "TFLite SQUARED_DIFFERENCE: y = (a−b)²",
    opencl="(((p)-(q))*((p)-(q)))",
)

_compare("Equal", np.equal, "ONNX Equal-19", "((p)==(q))")
_compare("Greater", np.greater, "ONNX Greater-13", "((p)>(q))")
_compare("GreaterOrEqual", np.greater_equal, "ONNX GreaterOrEqual-16", "((p)<(q)?0:1)")
_compare("Less", np.less, "ONNX Less-13", "((p)<(q))")
_compare("LessOrEqual", np.less_equal, "ONNX LessOrEqual-16", "((p)>(q)?0:1)")
_compare("NotEqual", np.not_equal, "TFLite NOT_EQUAL", "((p)!=(q))")

prelu = _binary(
    "PRelu",
    lambda x, slope: np.where(x < 0, x * slope, x).astype(x.dtype),
    "ONNX PRelu-16",
    opencl="((p)<0.0f?(p)*(q):(p))",
    properties={"activation": True},
)


# ---- many inputs


def _variadic(
    name: str, fn: Callable[..., Any], source: str, *, opencl: str = "", **properties: Any
) -> OpDef:
    """`opencl` is the function of two inputs as an expression of p and q, which has kernels."""
    op = define_op(name, inputs="*xs", layout="elementwise", source=source, **properties)
    op.infer(_broadcast_type)
    op.reference(lambda *xs: np.asarray(fn(xs)).astype(xs[0].dtype, copy=False))
    op.cost(_broadcast_cost)
    if opencl:
        _of_floats(op, _two_inputs, opencl)
        op.kernel("cpu", "any_binary", dtype=NUMBERS, accepts_pitch=True, rank=1, when=_two_inputs)
    return op


def _two_inputs(node: Node, types: list[TypeInfo | None]) -> bool | str:
    return len(types) == 2 or tr("it does not have two inputs")


_variadic(
    "Max", lambda xs: reduce(np.maximum, xs), "ONNX Max-13", opencl="MAXIMUM(p,q)", commutative=True
)
_variadic(
    "Min", lambda xs: reduce(np.minimum, xs), "ONNX Min-13", opencl="MINIMUM(p,q)", commutative=True
)
_variadic("Sum", lambda xs: reduce(np.add, xs), "ONNX Sum-13", opencl="((p)+(q))")
_variadic("Mean", lambda xs: reduce(np.add, xs) / len(xs), "ONNX Mean-13")

where = define_op(
    "Where", inputs="condition a b", layout="elementwise", carries=slice(1, 3),
    source="ONNX Where-16",
)  # fmt: skip


@where.infer
def _(condition: TypeInfo, a: TypeInfo, b: TypeInfo) -> TypeInfo:
    if condition.dtype is not DType.BOOL:
        raise ShapeError(tr("the condition is {dtype}, not bool", dtype=condition.dtype))
    return TypeInfo(a.dtype, broadcast_shapes(condition.shape, a.shape, b.shape))


@where.reference
def _(condition: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """y = condition ? a : b"""
    return np.where(condition, a, b)


where.kernel("cpu", "any_where", dtype="bool", accepts_pitch=True)
where.kernel("opencl", "where", dtype="bool", when=separate_axes)


@where.samples
def _(draw: Draw) -> Iterator[Sample]:
    for dtype in (DType.F32, DType.I64, DType.U8):
        of = Draw(dtype, f"Where {dtype}")
        for shapes in (((3, 40), (40,), (3, 40)), ((5,), (5,), ()), ((2, 1, 7), (3, 1), (2, 3, 7))):
            condition, a, b = shapes
            yield Sample([draw(*condition), of(*a), of(*b)])


@_bit_shift.samples
def _(draw: Draw) -> Iterator[Sample]:
    for direction in ("LEFT", "RIGHT"):
        at = draw.ints(0, 7, 33, dtype=draw.dtype.np)
        yield Sample([draw(4, 33), at], {"direction": direction})
