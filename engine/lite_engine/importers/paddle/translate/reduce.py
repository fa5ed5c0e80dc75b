"""Reductions, arg-reductions, sorting."""

from __future__ import annotations

from lite_messages import tr

from ....ir import DType, Value
from ..registry import Call, translates

_REDUCE = {
    "reduce_sum": "ReduceSum", "reduce_mean": "ReduceMean", "reduce_max": "ReduceMax",
    "reduce_min": "ReduceMin", "reduce_prod": "ReduceProd", "reduce_amax": "ReduceMax",
    "reduce_amin": "ReduceMin", "max": "ReduceMax", "logsumexp": "ReduceLogSumExp",
    "frobenius_norm": "ReduceL2",
}  # fmt: skip


def _axes(op: Call, x: Value) -> Value | None:
    """The axes as an input, None for all of them."""
    if op.flag("reduce_all"):
        return None
    axes = op.list_input("AxisTensor", "AxisTensorList", "dim")
    if axes is None and op.attr("axis") is not None:
        axes = op.const(op.ints("axis"))
    if axes is None:
        return None if op.type in ("logsumexp",) else op.const([0])
    if axes.const is not None:
        rank = op.rank(x)
        if axes.const.size in (0, rank) and len({int(a) % max(rank, 1) for a in axes.const}) in (
            0,
            rank,
        ):
            return None
    return axes


@translates(*_REDUCE)
def _(op: Call) -> None:
    """Over elements of the result's type, which for sums of bool and int32 is int64."""
    x = op.need("X")
    if int(op.attr("out_dtype", -1)) >= 0:
        x = op.cast(x, op.attr_dtype("out_dtype", 5))
    elif op.type == "reduce_sum" and x.dtype in (DType.BOOL, DType.I32):
        x = op.cast(x, DType.I64)
    keep = op.flag("keep_dim", op.flag("keepdim"))
    op.set("Out", op.node(_REDUCE[op.type], [x, _axes(op, x)], keepdims=int(keep)))


@translates("reduce_all", "reduce_any")
def _(op: Call) -> None:
    x = op.cast(op.need("X"), DType.I32)
    kind = "ReduceMin" if op.type == "reduce_all" else "ReduceMax"
    y = op.node(kind, [x, _axes(op, x)], keepdims=int(op.flag("keep_dim")))
    op.set("Out", op.cast(y, DType.BOOL))


@translates("mean")
def _(op: Call) -> None:
    op.set("Out", op.node("ReduceMean", [op.need("X")], keepdims=0))


@translates("arg_max", "arg_min")
def _(op: Call) -> None:
    x = op.need("X")
    axis, keep = int(op.attr("axis", -1)), op.flag("keepdims")
    if op["Axis"] is not None:
        axis = op.fixed_int(op["Axis"], tr("the axis"))
    if op.flag("flatten"):
        x, axis = op.to_shape(x, [-1]), 0
    kind = "ArgMax" if op.type == "arg_max" else "ArgMin"
    y = op.node(kind, [x], axis=axis, keepdims=int(keep))
    op.set("Out", op.cast(y, op.attr_dtype("dtype", 3)))


@translates("top_k", "top_k_v2")
def _(op: Call) -> None:
    x = op.need("X")
    k = op.list_input("K", "", [int(op.attr("k", 1))])
    values, indices = op.nodes(
        "TopK", [x, k], 2, axis=int(op.attr("axis", -1)), largest=int(op.flag("largest", True)),
        sorted=int(op.flag("sorted", True)),
    )  # fmt: skip
    op.set("Out", values)
    op.set("Indices", indices)


@translates("argsort")
def _(op: Call) -> None:
    x, axis = op.need("X"), int(op.attr("axis", -1))
    rank = op.rank(x)
    size = op.node("Shape", [x], start=axis % rank, end=axis % rank + 1)
    largest = int(op.flag("descending"))
    values, indices = op.nodes("TopK", [x, size], 2, axis=axis, largest=largest, sorted=1)
    op.set("Out", values)
    op.set("Indices", indices)


@translates("kthvalue")
def _(op: Call) -> None:
    x, axis, k = op.need("X"), int(op.attr("axis", -1)), int(op.attr("k", 1))
    values, indices = op.nodes("TopK", [x, op.const([k])], 2, axis=axis, largest=0, sorted=1)
    last = op.const([k - 1])
    for slot, value in (("Out", values), ("Indices", indices)):
        one = op.node("Gather", [value, last], axis=axis)
        op.set(slot, one if op.flag("keepdim") else op.node("Squeeze", [one, op.const([axis])]))


@translates("cumsum")
def _(op: Call) -> None:
    x, axis = op.need("X"), int(op.attr("axis", -1))
    if op.flag("flatten"):
        x, axis = op.to_shape(x, [-1]), 0
    op.set("Out", op.node(
        "CumSum", [x, op.const(axis)], exclusive=int(op.flag("exclusive")),
        reverse=int(op.flag("reverse")),
    ))  # fmt: skip


@translates("unique")
def _(op: Call) -> None:
    x = op.need("X")
    axis = op.ints("axis")
    if not op.flag("is_sorted", True):
        raise op.unsupported(tr("only is_sorted=True is supported"))
    parts = op.nodes("Unique", [x], 4, axis=axis[0] if axis else None, sorted=1)
    for slot, value in zip(("Out", "Indices", "Index", "Counts"), parts):
        op.set(slot, value)
