"""Control flow of TensorFlow: loops of fixed length are unrolled, decided branches are taken.

The lists of tensors that recurrent layers fill in their loops are kept here as lists of values:
every index is known once the counters have folded.
"""

from __future__ import annotations

import numpy as np
from lite_messages import tr

from ...errors import ModelFormatError, UnsupportedOperatorError
from ...ir import Value
from ._translate import Call, Result, TensorList, op
from .functions import Ref

MAX_STEPS = 1024
MAX_ITEMS = 1 << 16


def _decided(c: Call, ref: Ref) -> bool:
    value = c.nodes.value(ref)
    if value.const is None or value.const.size != 1:
        raise UnsupportedOperatorError(
            tr("{node} depends on data that is computed at run time", node=c.node.op),
            (c.name,),
            where=c.name,
            fix=tr(
                "only loops with a fixed number of steps and branches with a constant "
                "condition are supported; fix the input shapes, or export for inference"
            ),
        )
    return bool(value.const.ravel()[0])


@op("While", "StatelessWhile")
def while_(c: Call) -> Result:
    condition, body = c.attrs.function("cond"), c.attrs.function("body")
    state = list(c.refs)
    for step in range(MAX_STEPS):
        (go, *_) = c.nodes.call(f"{c.name}/cond{step}", condition, state)
        if not _decided(c, go):
            return [c.nodes.value(ref) for ref in state]
        state = c.nodes.call(f"{c.name}/step{step}", body, state)
    raise ModelFormatError(
        tr("tensorflow: {c}: more than {max_steps} steps", c=c.name, max_steps=MAX_STEPS)
    )


@op("If", "StatelessIf")
def if_(c: Call) -> Result:
    branch = "then_branch" if _decided(c, c.refs[0]) else "else_branch"
    taken = c.nodes.call(f"{c.name}/taken", c.attrs.function(branch), c.refs[1:])
    return [c.nodes.value(ref) for ref in taken]


# ---- lists of tensors


def _index(c: Call, position: int, size: int) -> int:
    (index,) = c.ints(position, tr("the index of a list"))
    if not 0 <= index < size:
        raise ModelFormatError(
            tr(
                "tensorflow: {c}: item {index} is outside a list of {size}",
                c=c.name,
                index=index,
                size=size,
            )
        )
    return index


@op("TensorListReserve", "EmptyTensorList")
def reserve(c: Call) -> TensorList:
    if c.node.op == "EmptyTensorList":
        return TensorList([])
    (count,) = c.ints(1, tr("the length of a list"))
    if not 0 <= count <= MAX_ITEMS:
        raise ModelFormatError(
            tr(
                "tensorflow: {c}: a list of {tensors} tensors is not supported",
                c=c.name,
                tensors=count,
            )
        )
    return TensorList([None] * count)


@op("TensorListFromTensor")
def from_tensor(c: Call) -> TensorList:
    x = c.x()
    count = c.emit.dims(x)[0] if c.emit.rank(x) else None
    if count is None or count > MAX_ITEMS:
        raise UnsupportedOperatorError(
            tr("the number of steps is not known"),
            (c.name,),
            where=c.name,
            fix=tr("fix the input shapes"),
        )
    if count == 1:
        return TensorList([c.emit("Squeeze", x, [0])])
    parts = c.emit.outputs("Split", [x], count, axis=0, num_outputs=count) if count else []
    return TensorList([c.emit("Squeeze", p, [0]) for p in parts])


@op("TensorListGetItem")
def get_item(c: Call) -> Value:
    items = c.nodes.list_of(c.refs[0]).items
    found = items[_index(c, 1, len(items))]
    if found is None:
        raise ModelFormatError(
            tr("tensorflow: {c} reads an item that nothing has written", c=c.name)
        )
    return found


@op("TensorListSetItem")
def set_item(c: Call) -> TensorList:
    items = list(c.nodes.list_of(c.refs[0]).items)
    items[_index(c, 1, len(items))] = c.x(2)
    return TensorList(items)


@op("TensorListPushBack")
def push_back(c: Call) -> TensorList:
    return TensorList([*c.nodes.list_of(c.refs[0]).items, c.x(1)])


@op("TensorListLength")
def length(c: Call) -> Value:
    return c.emit.const(np.array(len(c.nodes.list_of(c.refs[0]).items), np.int32))


@op("TensorListStack")
def stack(c: Call) -> Value:
    """All items along a new first axis."""
    items = c.nodes.list_of(c.refs[0]).items
    written = [i for i in items if i is not None]
    if len(written) < len(items) or not written:
        raise UnsupportedOperatorError(
            tr("a list with items that nothing has written"), (c.name,), where=c.name
        )
    parts = [c.emit("Unsqueeze", i, [0]) for i in written]
    return parts[0] if len(parts) == 1 else c.emit("Concat", *parts, axis=0)
