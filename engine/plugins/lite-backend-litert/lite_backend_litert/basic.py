"""Operators on elements, products, reductions, and those that move data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from lite_engine.ir import DType

from .call import LAST, TYPES, Call, options, static, writes

_UNARY: dict[str, tuple[str, str]] = {
    "Relu": ("RELU", ""), "Sigmoid": ("LOGISTIC", ""), "Tanh": ("TANH", ""), "Exp": ("EXP", "Exp"),
    "Log": ("LOG", ""), "Sqrt": ("SQRT", ""), "Abs": ("ABS", "Abs"), "Neg": ("NEG", "Neg"),
    "Floor": ("FLOOR", ""), "Ceil": ("CEIL", ""), "Round": ("ROUND", ""), "Sin": ("SIN", ""),
    "Cos": ("COS", "Cos"), "HardSwish": ("HARD_SWISH", "HardSwish"),
    "Not": ("LOGICAL_NOT", "LogicalNot"),
}  # fmt: skip
_BINARY = {
    "Add": ("ADD", "Add"), "Sub": ("SUB", "Sub"), "Mul": ("MUL", "Mul"), "Div": ("DIV", "Div"),
    "Pow": ("POW", "Pow"), "Max": ("MAXIMUM", "MaximumMinimum"),
    "Min": ("MINIMUM", "MaximumMinimum"), "Equal": ("EQUAL", "Equal"), "Less": ("LESS", "Less"),
    "Greater": ("GREATER", "Greater"), "LessOrEqual": ("LESS_EQUAL", "LessEqual"),
    "GreaterOrEqual": ("GREATER_EQUAL", "GreaterEqual"), "And": ("LOGICAL_AND", "LogicalAnd"),
    "Or": ("LOGICAL_OR", "LogicalOr"),
}  # fmt: skip
_REDUCTIONS = {
    "ReduceMean": "MEAN", "ReduceSum": "SUM", "ReduceMax": "REDUCE_MAX", "ReduceMin": "REDUCE_MIN",
    "ReduceProd": "REDUCE_PROD",
}  # fmt: skip
_CLIPS = {(0.0, 6.0): "RELU6", (-1.0, 1.0): "RELU_N1_TO_1", (0.0, 1.0): "RELU_0_TO_1"}


def _shape(c: Call, last: bool) -> list[int]:
    shape = static(c.node.output)
    return [shape[i] for i in LAST] if last else list(shape)


def _floats(c: Call) -> None:
    if c.value(0).dtype is not DType.F32:
        raise c.refused(f"{c.node.op} of {c.value(0).dtype} is not written")


@writes(*_UNARY)
def _(c: Call) -> None:
    code, kind = _UNARY[c.node.op]
    last = c.keeps_last()
    c.last(code, [c.x(0, last)], options(kind) if kind else None, last)


@writes("LeakyRelu")
def _(c: Call) -> None:
    last = c.keeps_last()
    c.last("LEAKY_RELU", [c.x(0, last)], options("LeakyRelu", alpha=c.attrs["alpha"]), last)


@writes("Gelu")
def _(c: Call) -> None:
    last, tanh = c.keeps_last(), c.attrs["approximate"] == "tanh"
    c.last("GELU", [c.x(0, last)], options("Gelu", approximate=tanh), last)


@writes("Elu")
def _(c: Call) -> None:
    if c.attrs["alpha"] != 1:
        raise c.refused("TFLite's ELU has alpha 1")
    last = c.keeps_last()
    c.last("ELU", [c.x(0, last)], None, last)


@writes("Reciprocal")
def _(c: Call) -> None:
    last = c.keeps_last()
    c.last("DIV", [c.array(1.0), c.x(0, last)], options("Div"), last)


@writes("Identity", "Dropout", "Reshape", "Flatten", "Squeeze", "Unsqueeze")
def _(c: Call) -> None:
    if len(c.node.outputs) > 1:
        raise c.refused("a mask is not written")
    c.last("RESHAPE", [c.x(), c.array(static(c.node.output), np.int32)])


@writes("Clip")
def _(c: Call) -> None:
    _floats(c)
    last = c.keeps_last()
    bounds = [None if c.node.input(i) is None else float(c.const(i)) for i in (1, 2)]
    low, high = bounds
    if (low, high) in _CLIPS:
        c.last(_CLIPS[low, high], [c.x(0, last)], None, last)  # type: ignore[index]
        return
    low, high = (-math.inf if low is None else low), (math.inf if high is None else high)
    kind = options("MaximumMinimum")
    above = c.emit("MAXIMUM", [c.x(0, last), c.array(low)], _shape(c, last), kind)
    c.last("MINIMUM", [above, c.array(high)], kind, last)


@writes("HardSigmoid")
def _(c: Call) -> None:
    last = c.keeps_last()
    shape = _shape(c, last)
    y = c.emit("MUL", [c.x(0, last), c.array(c.attrs["alpha"])], shape, options("Mul"))
    y = c.emit("ADD", [y, c.array(c.attrs["beta"])], shape, options("Add"))
    c.last("RELU_0_TO_1", [y], None, last)


@writes(*_BINARY)
def _(c: Call) -> None:
    code, kind = _BINARY[c.node.op]
    last = c.keeps_last()
    first, *others = (c.operand(i, last) for i in range(len(c.node.inputs)))
    if not others:
        c.last("RESHAPE", [first, c.array(_shape(c, last), np.int32)], None, last)
        return
    if c.node.op == "Div" and c.value(0).dtype is not DType.F32:
        raise c.refused("a division of whole numbers is not written")
    for other in others[:-1]:
        first = c.emit(code, [first, other], _shape(c, last), options(kind))
    c.last(code, [first, others[-1]], options(kind), last)


@writes("PRelu")
def _(c: Call) -> None:
    last = c.keeps_last()
    c.last("PRELU", [c.x(0, last), c.operand(1, last)], None, last)


@writes("Where")
def _(c: Call) -> None:
    last = c.keeps_last()
    c.last("SELECT_V2", [c.operand(i, last) for i in range(3)], options("SelectV2"), last)


@writes("Cast")
def _(c: Call) -> None:
    source, target = c.value(0).dtype, c.node.output.dtype
    if source not in TYPES or target not in TYPES:
        raise c.refused(f"a cast from {source} to {target} is not written")
    last = c.keeps_last()
    kind = options("Cast", inDataType=TYPES[source], outDataType=TYPES[target])
    c.last("CAST", [c.x(0, last)], kind, last)


# ---- products


def _bias(c: Call, index: int, units: int) -> int | None:
    """A bias that a dense layer takes, None for one that is added behind it."""
    value = c.node.input(index)
    if value is None:
        return c.array(np.zeros(units))
    if value.const is not None and value.const.size in (1, units) and value.const.shape[:-1] in (
        (), (1,)
    ):  # fmt: skip
        return c.array(np.broadcast_to(value.const.reshape(-1), (units,)))
    return None


@writes("Gemm")
def _(c: Call) -> None:
    if c.attrs["transA"] or c.attrs["alpha"] != 1 or c.attrs["beta"] != 1:
        raise c.refused("a Gemm with transA, alpha or beta is not written")
    w = c.const(1) if c.attrs["transB"] else c.const(1).T
    bias = _bias(c, 2, len(w))
    if bias is not None:
        c.last("FULLY_CONNECTED", [c.x(), c.array(w), bias], options("FullyConnected"))
        return
    zeros = c.array(np.zeros(len(w)))
    y = c.emit(
        "FULLY_CONNECTED", [c.x(), c.array(w), zeros], _shape(c, False), options("FullyConnected")
    )
    c.last("ADD", [y, c.x(2)], options("Add"))


@writes("MatMul")
def _(c: Call) -> None:
    _floats(c)
    if min(c.rank(0), c.rank(1)) < 2:
        raise c.refused("a product with a vector is not written")
    w = c.value(1).const
    if w is None or w.ndim > 2:
        c.last("BATCH_MATMUL", [c.x(0), c.x(1)], options("BatchMatMul"))
        return
    kind = options("FullyConnected", keepNumDims=True)
    c.last("FULLY_CONNECTED", [c.x(), c.array(w.T), c.array(np.zeros(w.shape[1]))], kind)


@writes("Softmax", "LogSoftmax")
def _(c: Call) -> None:
    rank = c.rank()
    axis = c.attrs["axis"] % rank
    code = "SOFTMAX" if c.node.op == "Softmax" else "LOG_SOFTMAX"
    kind = options("Softmax", beta=1.0) if code == "SOFTMAX" else options("LogSoftmax")
    if axis == rank - 1 or (axis == 1 and rank == 4):
        last = axis != rank - 1
        c.last(code, [c.x(0, last)], kind, last)
        return
    perm = [i for i in range(rank) if i != axis] + [axis]
    shape = [c.shape()[i] for i in perm]
    moved = c.emit("TRANSPOSE", [c.x(), c.array(perm, np.int32)], shape, options("Transpose"))
    soft = c.emit(code, [moved], shape, kind)
    c.last("TRANSPOSE", [soft, c.array(np.argsort(perm), np.int32)], options("Transpose"))


@writes("LayerNormalization")
def _(c: Call) -> None:
    """(x − mean) / √(variance + ε) · scale + bias"""
    if len(c.node.outputs) > 1:
        raise c.refused("mean and deviation as outputs are not written")
    shape, first = list(c.shape()), c.attrs["axis"] % c.rank()
    axes = c.array(range(first, len(shape)), np.int32)
    one = [1 if i >= first else d for i, d in enumerate(shape)]
    keep, x = options("Reducer", keepDims=True), c.x()
    d = c.emit("SUB", [x, c.emit("MEAN", [x, axes], one, keep)], shape, options("Sub"))
    square = c.emit("MUL", [d, d], shape, options("Mul"))
    variance = c.emit("MEAN", [square, axes], one, keep)
    sum_ = c.emit("ADD", [variance, c.array(c.attrs["epsilon"])], one, options("Add"))
    y = c.emit("MUL", [d, c.emit("RSQRT", [sum_], one)], shape, options("Mul"))
    if c.node.input(2) is None:
        c.last("MUL", [y, c.x(1)], options("Mul"))
    else:
        y = c.emit("MUL", [y, c.x(1)], shape, options("Mul"))
        c.last("ADD", [y, c.x(2)], options("Add"))


@writes(*_REDUCTIONS)
def _(c: Call) -> None:
    axes = c.ints(1)
    if not axes:
        if c.attrs.get("noop_with_empty_axes"):
            raise c.refused("a reduction over no axis is not written")
        axes = list(range(c.rank()))
    axes = [a % c.rank() for a in axes]
    keep = bool(c.attrs["keepdims"])
    last = keep and c.file.has_last(c.value(0))
    if last:
        axes = [LAST.index(a) for a in axes]
    kind = options("Reducer", keepDims=keep)
    c.last(_REDUCTIONS[c.node.op], [c.x(0, last), c.array(axes, np.int32)], kind, last)


@writes("ArgMax", "ArgMin")
def _(c: Call) -> None:
    if c.attrs["select_last_index"]:
        raise c.refused("the last of equal values is not chosen by TFLite")
    axis = c.attrs["axis"] % c.rank()
    shape = [d for i, d in enumerate(c.shape()) if i != axis]
    code, kind = ("ARG_MAX", "ArgMax") if c.node.op == "ArgMax" else ("ARG_MIN", "ArgMin")
    made = options(kind, outputType=TYPES[DType.I64])
    inputs = [c.x(), c.array([axis], np.int32)]
    if not c.attrs["keepdims"]:
        c.last(code, inputs, made)
        return
    y = c.emit(code, inputs, shape, made)
    c.last("RESHAPE", [y, c.array(static(c.node.output), np.int32)])


# ---- what moves data


@writes("Transpose")
def _(c: Call) -> None:
    perm = c.attrs["perm"] or range(c.rank())[::-1]
    c.last("TRANSPOSE", [c.x(), c.array(perm, np.int32)], options("Transpose"))


def _axis(c: Call, last: bool) -> int:
    axis = c.attrs["axis"] % c.rank()
    return LAST.index(axis) if last else axis


@writes("Concat")
def _(c: Call) -> None:
    values = c.node.inputs
    last = len(static(c.node.output)) == 4 and any(
        v is not None and c.file.has_last(v) for v in values
    )
    kind = options("Concatenation", axis=_axis(c, last))
    c.last("CONCATENATION", [c.x(i, last) for i in range(len(values))], kind, last)


@writes("Split")
def _(c: Call) -> None:
    last = c.file.has_last(c.value(0))
    axis = c.attrs["axis"] % c.rank()
    sizes = c.array([static(v)[axis] for v in c.node.outputs], np.int32)
    kind = options("SplitV", numSplits=len(c.node.outputs))
    c.last("SPLIT_V", [c.x(0, last), sizes, c.array(_axis(c, last), np.int32)], kind, last)


@writes("Slice")
def _(c: Call) -> None:
    starts, ends = c.ints(1) or [], c.ints(2) or []
    axes = c.ints(3) or list(range(len(starts)))
    steps = c.ints(4) or [1] * len(starts)
    if min(steps, default=1) < 1:
        raise c.refused("steps below 1 are not written")
    begin, stop, step = [0] * c.rank(), list(c.shape()), [1] * c.rank()
    for axis, start, end, stride in zip(axes, starts, ends, steps):
        axis %= c.rank()
        begin[axis], stop[axis], step[axis] = slice(start, end, stride).indices(c.shape()[axis])
    if 0 in static(c.node.output):
        raise c.refused("an empty result is not written")
    last = c.file.has_last(c.value(0))
    lists: Any = (begin, stop, step)
    given = [[n[i] for i in LAST] if last else n for n in lists]
    c.last(
        "STRIDED_SLICE", [c.x(0, last), *(c.array(n, np.int32) for n in given)],
        options("StridedSlice"), last,
    )  # fmt: skip


@writes("Gather")
def _(c: Call) -> None:
    index = c.value(1)
    axis = c.attrs["axis"] % c.rank()
    if index.const is not None:  # TFLite counts from the front only
        at = c.array(index.const % c.shape()[axis], np.int32)
    else:
        at = c.x(1)
    c.last("GATHER", [c.x(), at], options("Gather", axis=axis))


@writes("Expand")
def _(c: Call) -> None:
    shape = c.array(static(c.node.output), np.int32)
    c.last("BROADCAST_TO", [c.x(), shape], options("BroadcastTo"))


@writes("Tile")
def _(c: Call) -> None:
    c.last("TILE", [c.x(), c.array(c.ints(1), np.int32)], options("Tile"))


@writes("Pad")
def _(c: Call) -> None:
    _floats(c)
    pads, mode = c.ints(1) or [], c.attrs["mode"]
    axes = c.ints(3) or list(range(c.rank()))
    amounts = np.zeros((c.rank(), 2), np.int32)
    for i, axis in enumerate(axes):
        amounts[axis] = pads[i], pads[i + len(axes)]
    if amounts.min() < 0 or mode not in ("constant", "reflect"):
        raise c.refused(f"padding of mode {mode}, or below 0, is not written")
    last = c.file.has_last(c.value(0))
    where = c.array(amounts[list(LAST)] if last else amounts, np.int32)
    if mode == "reflect":
        c.last("MIRROR_PAD", [c.x(0, last), where], options("MirrorPad", mode=0), last)
        return
    value = 0.0 if c.node.input(2) is None else float(c.const(2))
    c.last("PADV2", [c.x(0, last), where, c.array(value)], options("PadV2"), last)
