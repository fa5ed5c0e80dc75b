"""Operators whose meaning TensorFlow and TFLite share, as ONNX-semantics nodes.

Layout-free here (shapes, slices, reductions, gathers); spatial ones are in `_nhwc`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from lite_messages import tr

from ..errors import ModelFormatError
from ..ir import DType, Value
from ._emit import Emitter

#: TensorFlow operator → ONNX operator of the same meaning, one or two inputs.
SAME = {
    "Abs": "Abs", "Acos": "Acos", "Acosh": "Acosh", "Asin": "Asin", "Asinh": "Asinh",
    "Atan": "Atan", "Atanh": "Atanh", "Ceil": "Ceil", "Cos": "Cos", "Cosh": "Cosh", "Elu": "Elu",
    "Erf": "Erf", "Exp": "Exp", "Floor": "Floor", "Log": "Log", "LogicalNot": "Not", "Neg": "Neg",
    "Reciprocal": "Reciprocal", "Inv": "Reciprocal", "Relu": "Relu", "Rint": "Round",
    "Round": "Round", "Sigmoid": "Sigmoid", "Sign": "Sign", "Sin": "Sin", "Sinh": "Sinh",
    "Softplus": "Softplus", "Softsign": "Softsign", "Sqrt": "Sqrt", "Tan": "Tan", "Tanh": "Tanh",
    "Add": "Add", "AddV2": "Add", "Sub": "Sub", "Mul": "Mul", "RealDiv": "Div",
    "Maximum": "Max", "Minimum": "Min", "Pow": "Pow", "Equal": "Equal", "Less": "Less",
    "LessEqual": "LessOrEqual", "Greater": "Greater", "GreaterEqual": "GreaterOrEqual",
    "LogicalAnd": "And", "LogicalOr": "Or", "IsNan": "IsNaN", "IsInf": "IsInf",
    "NotEqual": "NotEqual", "Square": "Square", "SquaredDifference": "SquaredDifference",
    "Rsqrt": "Rsqrt", "Expm1": "Expm1", "Log1p": "Log1p", "Atan2": "Atan2",
}  # fmt: skip

REDUCE = {
    "Mean": "ReduceMean", "Sum": "ReduceSum", "Max": "ReduceMax", "Min": "ReduceMin",
    "Prod": "ReduceProd",
}  # fmt: skip


def scalar(emit: Emitter, x: Value, number: float) -> Value:
    """A constant of x's element type."""
    if x.dtype is None:
        raise ModelFormatError(
            tr("the element type of {x} is not known", x=x.name), where=emit.source
        )
    return emit.const(np.array(number, x.dtype.np))


def clip(emit: Emitter, x: Value, low: float, high: float) -> Value:
    return emit("Clip", x, scalar(emit, x, low), scalar(emit, x, high))


def div_no_nan(emit: Emitter, a: Value, b: Value) -> Value:
    """a / b, 0 where b is 0."""
    zero = scalar(emit, a, 0)
    return emit("Where", emit("Equal", b, zero), zero, emit("Div", a, b))


def is_finite(emit: Emitter, x: Value) -> Value:
    return emit("Not", emit("Or", emit("IsNaN", x), emit("IsInf", x)))


def add_n(emit: Emitter, *parts: Value) -> Value:
    return emit("Sum", *parts)


def zeros_like(emit: Emitter, x: Value) -> Value:
    return emit("Expand", scalar(emit, x, 0), emit("Shape", x))


def ones_like(emit: Emitter, x: Value) -> Value:
    return emit("Expand", scalar(emit, x, 1), emit("Shape", x))


def cumsum(emit: Emitter, x: Value, axis: Value, exclusive: bool, reverse: bool) -> Value:
    at = emit.integer(axis, tr("the axis"))
    flags = {"exclusive": int(exclusive), "reverse": int(reverse)}
    return emit("CumSum", x, np.array(at, np.int64), **flags)


def rank(emit: Emitter, x: Value) -> Value:
    return emit.const(np.array(emit.rank(x), np.int32))


def range_(emit: Emitter, start: Value, limit: Value, delta: Value) -> Value:
    return emit("Range", start, limit, delta)


def reduce(emit: Emitter, op: str, x: Value, axes: Value, keep: bool) -> Value:
    """One of REDUCE's ONNX operators. No axis at all leaves x as it is."""
    wanted = emit.ints(axes, tr("the list of axes"))
    if not wanted:
        return x
    return emit(op, x, wanted, keepdims=int(keep))


def reduce_bool(emit: Emitter, x: Value, axes: Value, keep: bool, every: bool) -> Value:
    """All (`every`) or Any over booleans."""
    number = emit("Cast", x, to=DType.I32)
    op = "ReduceMin" if every else "ReduceMax"
    return emit("Cast", reduce(emit, op, number, axes, keep), to=DType.BOOL)


def arg_extreme(emit: Emitter, op: str, x: Value, axis: Value, to: DType) -> Value:
    """ArgMax or ArgMin along one axis, which disappears."""
    at = emit.integer(axis, tr("the axis"))
    return emit.cast(emit(op, x, axis=at, keepdims=0), to)


def squeeze(emit: Emitter, x: Value, axes: Sequence[int]) -> Value:
    return emit("Squeeze", x, list(axes) if len(axes) else None)


def expand_dims(emit: Emitter, x: Value, axis: Value) -> Value:
    return emit("Unsqueeze", x, [emit.integer(axis, tr("the axis"))])


def reshape(emit: Emitter, x: Value, shape: Value) -> Value:
    if shape.const is not None:
        return emit.reshape(x, emit.ints(shape, tr("the shape")))
    return emit("Reshape", x, emit.cast(shape, DType.I64), allowzero=1)


def shape_of(emit: Emitter, x: Value, to: DType) -> Value:
    return emit.cast(emit("Shape", x), to)


def top_k(emit: Emitter, x: Value, k: Value) -> list[Value]:
    """Largest k of the last axis, sorted: values and i32 positions."""
    count = emit.cast(k, DType.I64)
    count = emit.reshape(count, [1])
    values, at = emit.outputs("TopK", [x, count], 2, axis=-1, largest=1, sorted=1)
    return [values, emit.cast(at, DType.I32)]


def one_hot(emit: Emitter, x: Value, depth: Value, on: Value, off: Value, axis: int) -> Value:
    """All off for a negative index, which ONNX counts from the end: it becomes `depth`."""
    values = emit("Concat", emit.reshape(off, [1]), emit.reshape(on, [1]), axis=0)
    at, count = emit.cast(x, DType.I64), emit.reshape(emit.cast(depth, DType.I64), [])
    at = emit("Where", emit("Less", at, scalar(emit, at, 0)), count, at)
    return emit("OneHot", at, emit.reshape(count, [1]), values, axis=axis)


def select_v2(emit: Emitter, condition: Value, a: Value, b: Value) -> Value:
    return emit("Where", condition, a, b)


def select(emit: Emitter, condition: Value, a: Value, b: Value) -> Value:
    """The older form: a rank-1 condition picks whole rows."""
    if condition.shape is not None and len(condition.shape) == 1 and emit.rank(a) > 1:
        condition = emit.reshape(condition, [-1, *[1] * (emit.rank(a) - 1)])
    return emit("Where", condition, a, b)


def batch_matmul(emit: Emitter, a: Value, b: Value, adj_a: bool, adj_b: bool) -> Value:
    if adj_a:
        a = swap_last(emit, a)
    if adj_b:
        b = swap_last(emit, b)
    return emit("MatMul", a, b)


def swap_last(emit: Emitter, x: Value) -> Value:
    """The last two axes exchanged."""
    rank = emit.rank(x)
    if rank < 2:
        raise ModelFormatError(
            tr("{type} has no two axes to exchange", type=x.type), where=emit.source
        )
    return emit.transpose(x, [*range(rank - 2), rank - 1, rank - 2])


def l2_normalise(emit: Emitter, x: Value, axis: int, epsilon: float) -> Value:
    """x / √max(Σx², ε)."""
    total = emit("ReduceSum", emit("Square", x), [axis], keepdims=1)
    return emit("Div", x, emit("Sqrt", emit("Max", total, scalar(emit, x, epsilon))))


def where_indices(emit: Emitter, condition: Value) -> Value:
    """Coordinates of the true elements, one row each, i64."""
    return emit.transpose(emit("NonZero", condition), [1, 0])
