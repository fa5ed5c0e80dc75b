"""Lookup and selection by index."""

from __future__ import annotations

from lite_messages import tr

from ....ir import DType
from ..registry import Call, translates
from .lite_int8 import weight_of


@translates("gather")
def _(op: Call) -> None:
    x, index = op.need("X"), op.need("Index")
    axis = int(op.attr("axis", 0))
    if op["Axis"] is not None:
        axis = op.fixed_int(op["Axis"], tr("the axis"))
    if index.shape is not None and len(index.shape) == 2 and index.shape[1] == 1:
        index = op.to_shape(index, [-1])
    op.set("Out", op.node("Gather", [x, index], axis=axis))


@translates("gather_nd")
def _(op: Call) -> None:
    op.set("Out", op.node("GatherND", [op.need("X"), op.cast(op.need("Index"), DType.I64)]))


@translates("index_select")
def _(op: Call) -> None:
    axis = int(op.attr("dim", op.attr("axis", 0)))
    op.set("Out", op.node("Gather", [op.need("X"), op.need("Index")], axis=axis))


@translates("index_sample")
def _(op: Call) -> None:
    op.set("Out", op.node("GatherElements", [op.need("X"), op.need("Index")], axis=1))


@translates("take_along_axis")
def _(op: Call) -> None:
    axis = int(op.attr("Axis", op.attr("axis", 0)))
    op.set("Result", op.node("GatherElements", [op.need("Input"), op.need("Index")], axis=axis))


@translates("put_along_axis")
def _(op: Call) -> None:
    axis = int(op.attr("Axis", op.attr("axis", 0)))
    how = str(op.attr("Reduce", op.attr("reduce", "assign")))
    reduction = {"assign": "none", "add": "add", "mul": "mul", "multiply": "mul",
                 "amax": "max", "amin": "min"}.get(how)  # fmt: skip
    if reduction is None:
        raise op.unsupported(tr("reduction {how!r} is not supported", how=how))
    op.set("Result", op.node(
        "ScatterElements", [op.need("Input"), op.need("Index"), op.need("Value")], axis=axis,
        reduction=reduction,
    ))  # fmt: skip


@translates("scatter")
def _(op: Call) -> None:
    x, index = op.need("X"), op.cast(op.need("Ids"), DType.I64)
    index = op.to_shape(index, [-1, 1])
    updates = op.need("Updates")
    if op.flag("overwrite", True):
        op.set("Out", op.node("ScatterND", [x, index, updates]))
        return
    # the rows named are cleared first, then everything is added
    clear = op.node("Sub", [updates, updates])
    base = op.node("ScatterND", [x, index, clear])
    op.set("Out", op.node("ScatterND", [base, index, updates], reduction="add"))


@translates("scatter_nd_add")
def _(op: Call) -> None:
    index = op.cast(op.need("Index"), DType.I64)
    op.set("Out", op.node("ScatterND", [op.need("X"), index, op.need("Updates")], reduction="add"))


@translates("lookup_table", "lookup_table_v2", "embedding")
def _(op: Call) -> None:
    ids = op.need("Ids")
    if op.type == "lookup_table" and ids.shape is not None and ids.shape[-1] == 1:
        ids = op.node("Squeeze", [ids, op.const([-1])])
    w = weight_of(op, "W", axis=1)
    y = op.node("Gather", [w, ids], axis=0)
    padding = int(op.attr("padding_idx", -1))
    if padding >= 0:
        keep = op.node("Not", [op.node("Equal", [ids, op.const(padding, like=ids)])])
        keep = op.node("Unsqueeze", [op.cast(keep, op.dtype(y)), op.const([-1])])
        y = op.node("Mul", [y, keep])
    op.set("Out", y)


@translates("one_hot", "one_hot_v2")
def _(op: Call) -> None:
    x = op.need("X")
    tensor = op["depth_tensor"]
    depth = op.vector(tensor) if tensor is not None else op.const([int(op.attr("depth", -1))])
    if op.type == "one_hot" and x.shape is not None and x.shape[-1] == 1:
        x = op.node("Squeeze", [x, op.const([-1])])
    dtype = op.attr_dtype("dtype", 5)
    op.set("Out", op.node("OneHot", [x, depth, op.const([0, 1], dtype)], axis=-1))


@translates("where")
def _(op: Call) -> None:
    op.set("Out", op.node("Where", [op.need("Condition"), op.need("X"), op.need("Y")]))


@translates("where_index", "nonzero")
def _(op: Call) -> None:
    x = op["Condition"] if op["Condition"] is not None else op.need("X")
    op.set("Out", op.node("Transpose", [op.node("NonZero", [x])], perm=[1, 0]))


@translates("masked_select")
def _(op: Call) -> None:
    x, mask = op.to_shape(op.need("X"), [-1]), op.to_shape(op.need("Mask"), [-1])
    op.set("Y", op.node("Compress", [x, mask], axis=0))
