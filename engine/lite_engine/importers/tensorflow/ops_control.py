"""Control flow of TensorFlow: loops of fixed length are unrolled, decided branches are taken. What
depends on data becomes Loop and If (`data_control`).

The lists of tensors that recurrent layers fill in their loops are kept here as lists of values:
every index is known once the counters have folded.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from lite_messages import tr

from ...errors import ModelFormatError, UnsupportedOperatorError
from ...ir import Value
from ._translate import Call, Result, TensorList, op
from .data_control import choice, loop
from .functions import Ref

MAX_STEPS = 1024
MAX_ITEMS = 1 << 16


def _decided(c: Call, ref: Ref) -> bool | None:
    """None where it depends on data."""
    value = c.nodes.value(ref)
    if value.const is None or value.const.size != 1:
        return None
    return bool(value.const.ravel()[0])


@op("While", "StatelessWhile")
def while_(c: Call) -> Result:
    condition, body = c.attrs.function("cond"), c.attrs.function("body")
    state = list(c.refs)
    for step in range(MAX_STEPS):
        (go, *_) = c.nodes.call(f"{c.name}/cond{step}", condition, state)
        goes_on = _decided(c, go)
        if goes_on is None:
            return loop(c, state, go)
        if not goes_on:
            return [c.nodes.value(ref) for ref in state]
        state = c.nodes.call(f"{c.name}/step{step}", body, state)
    raise ModelFormatError(
        tr("tensorflow: {c}: more than {max_steps} steps", c=c.name, max_steps=MAX_STEPS)
    )


@op("If", "StatelessIf")
def if_(c: Call) -> Result:
    condition = _decided(c, c.refs[0])
    if condition is None:
        return choice(c, c.refs[1:])
    branch = "then_branch" if condition else "else_branch"
    taken = c.nodes.call(f"{c.name}/taken", c.attrs.function(branch), c.refs[1:])
    return [c.nodes.value(ref) for ref in taken]


# ---- lists of tensors


def _index(c: Call, position: int, size: int) -> int:
    index = c.integer(position, tr("the index of a list"))
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
    return TensorList([]) if c.node.op == "EmptyTensorList" else _empty(c, 1)


def _empty(c: Call, position: int) -> TensorList:
    """As many items as an input says, none written."""
    count = c.integer(position, tr("the length of a list"))
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
    return TensorList(list(from_rows(c, c.x())))


def from_rows(c: Call, x: Value) -> list[Value]:
    """The parts of x along its first axis."""
    count = c.emit.dims(x)[0] if c.emit.rank(x) else None
    if count is None or count > MAX_ITEMS:
        raise UnsupportedOperatorError(
            tr("the number of steps is not known"),
            (c.name,),
            where=c.name,
            fix=tr("fix the input shapes"),
        )
    if count == 1:
        return [c.emit("Squeeze", x, [0])]
    parts = c.emit.outputs("Split", [x], count, axis=0, num_outputs=count) if count else []
    return [c.emit("Squeeze", p, [0]) for p in parts]


@op("TensorListGetItem")
def get_item(c: Call) -> Value:
    return _written(c, c.nodes.list_of(c.refs[0]).items)


def _written(c: Call, items: Sequence[Value | None]) -> Value:
    """The item that input 1 names."""
    found = items[_index(c, 1, len(items))]
    if found is None:
        raise ModelFormatError(tr("tensorflow: {c} reads an item before it is written", c=c.name))
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
    return stacked(c, c.nodes.list_of(c.refs[0]).items)


def stacked(c: Call, items: Sequence[Value | None]) -> Value:
    written = [i for i in items if i is not None]
    if len(written) < len(items) or not written:
        raise UnsupportedOperatorError(
            tr("a list with items that are never written"), (c.name,), where=c.name
        )
    parts = [c.emit("Unsqueeze", i, [0]) for i in written]
    return parts[0] if len(parts) == 1 else c.emit("Concat", *parts, axis=0)


# ---- the same of TensorFlow 1: what a TensorArray holds travels with its flow


@op("TensorArrayV3")
def array(c: Call) -> Result:
    """The handle, which nothing asks, and the flow."""
    return [c.emit.const(np.zeros((), np.float32)), _empty(c, 0)]


def _items(c: Call, flow: int) -> list[Value | None]:
    return list(c.nodes.list_of(c.refs[flow]).items)


def _grown(items: list[Value | None], count: int) -> list[Value | None]:
    return [*items, *[None] * (count - len(items))]


@op("TensorArrayReadV3")
def array_read(c: Call) -> Value:
    return _written(c, _items(c, 2))


@op("TensorArrayWriteV3")
def array_write(c: Call) -> TensorList:
    index = c.integer(1, tr("the index of a list"))
    items = _grown(_items(c, 3), min(index + 1, MAX_ITEMS))
    items[_index(c, 1, len(items))] = c.x(2)
    return TensorList(items)


@op("TensorArrayScatterV3")
def array_scatter(c: Call) -> TensorList:
    """The rows of a tensor to the items that a list of indices names."""
    rows = from_rows(c, c.x(2))
    indices = c.ints(1, tr("the indices of a list"))
    if len(indices) != len(rows) or not all(0 <= i < MAX_ITEMS for i in indices):
        raise ModelFormatError(
            tr("tensorflow: {c} writes {rows} rows to {indices} items", c=c.name,
               rows=len(rows), indices=len(indices))
        )  # fmt: skip
    items = _grown(_items(c, 3), max(indices, default=-1) + 1)
    for index, row in zip(indices, rows):
        items[index] = row
    return TensorList(items)


@op("TensorArrayGatherV3")
def array_gather(c: Call) -> Value:
    items = _items(c, 2)
    indices = c.ints(1, tr("the indices of a list"))
    if not all(0 <= i < len(items) for i in indices):
        raise ModelFormatError(
            tr("tensorflow: {c}: items {indices} of a list of {size}", c=c.name,
               indices=indices, size=len(items))
        )  # fmt: skip
    return stacked(c, [items[i] for i in indices])


@op("TensorArraySizeV3")
def array_size(c: Call) -> Value:
    return c.emit.const(np.array(len(_items(c, 1)), np.int32))


@op("TensorArrayCloseV3")
def array_close(c: Call) -> Result:
    return []
