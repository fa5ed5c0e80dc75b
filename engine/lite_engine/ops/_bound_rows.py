"""What becomes of open rows (bounds.py) in each operator."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from lite_messages import tr

from ..ir import DType, Node, Value, node_reads
from ._bounding import Bounding, Count, Rows, Rule, Size, Unbounded
from ._core import find_op
from ._helpers import normalise_axes, normalise_axis, residual_of

#: A place that no array has, in i32 and in i64: reading gives zeros, writing nothing.
NOWHERE = 2**31 - 1
Found = Sequence[Rows | None] | None


def refusal(node: Node) -> Unbounded:
    return Unbounded(tr("{op} has a size that depends on data", op=node.op))


def alone(b: Bounding, node: Node) -> Found:
    if any(map(b.of, node_reads(node))):
        raise refusal(node)
    return ()


def first(node: Node) -> Value:
    value = node.inputs[0]
    assert value is not None
    return value


def rank_of(value: Value | None) -> int:
    return len(value.shape or ()) if value is not None else 0


# ---- row by row


def elementwise(b: Bounding, node: Node) -> Found:
    rank = max(map(rank_of, node.inputs))
    found: Rows | None = None
    for value in node.inputs:
        if (rows := b.of(value)) is not None:
            here = Rows(rows.axis + rank - rank_of(value), rows.count)
            if found not in (None, here):
                raise refusal(node)
            found = here
    if found is None:
        return ()
    for value in node.inputs:
        at = found.axis - rank + rank_of(value)
        if value is not None and b.of(value) is None and at >= 0 and (value.shape or ())[at] != 1:
            raise refusal(node)
    return [found for _ in node.outputs]


def along(b: Bounding, node: Node) -> Found:
    """A function of each line along an axis, which is an attribute or a constant input."""
    rows, op = b.of(first(node)), find_op(node.op)
    if rows is None or op is None or any(b.of(v) for v in node.inputs[1:]):
        raise refusal(node)
    axis = op.filled_attrs(node).get("axis")
    for i, value in enumerate(node.inputs):
        if value is not None and op.input_name(i) == "axis":
            axis = None if value.const is None else value.const.item()
    if axis is None or normalise_axis(int(axis), rank_of(first(node))) == rows.axis:
        raise refusal(node)
    return [rows for _ in node.outputs]


def _product(b: Bounding, node: Node) -> Found:
    """Gemm and MatMul: rows of the first operand, to which those of a residual are added."""
    rows = b.of(first(node))
    if rows is None:
        return alone(b, node)
    inner = 0 if node.attrs.get("transA") else rank_of(node.inputs[0]) - 1
    residual = residual_of(node)
    others = [v for v in node.inputs[1:] if v is not residual]
    broad = any(rank_of(v) > 1 and (v.shape or ())[0] != 1 for v in others[1:] if v is not None)
    if residual is not None and b.of(residual) != rows:
        raise refusal(node)
    if any(map(b.of, others)) or rows.axis == inner or rank_of(node.inputs[1]) != 2:
        raise refusal(node)
    if broad:
        raise refusal(node)
    return [Rows(0 if node.attrs.get("transA") else rows.axis, rows.count)]


# ---- views


def _transpose(b: Bounding, node: Node) -> Found:
    rows, rank = b.of(first(node)), rank_of(node.inputs[0])
    perm = node.attrs.get("perm") or list(range(rank))[::-1]
    return [rows and Rows(perm.index(rows.axis), rows.count)]


def _axes(node: Node, rank: int) -> list[int] | None:
    """Axes of an attribute or a constant second input."""
    given, axes = node.input(1), node.attrs.get("axes")
    if given is not None:
        if given.const is None:
            raise refusal(node)
        axes = given.const.ravel().tolist()
    return None if axes is None else normalise_axes(axes, rank)


def _squeeze(b: Bounding, node: Node) -> Found:
    value = first(node)
    rows, rank = b.of(value), rank_of(value)
    if rows is None:
        return ()
    axes = _axes(node, rank)
    if axes is None:
        axes = [i for i, d in enumerate(value.shape or ()) if d == 1]
    if rows.axis in axes:
        raise refusal(node)
    return [Rows([i for i in range(rank) if i not in axes].index(rows.axis), rows.count)]


def _unsqueeze(b: Bounding, node: Node) -> Found:
    rows, rank = b.of(first(node)), rank_of(node.inputs[0])
    if rows is None:
        return ()
    count = len(_axes(node, 99) or ())
    axes = _axes(node, rank + count) or []
    return [Rows([i for i in range(rank + count) if i not in axes][rows.axis], rows.count)]


def _flatten(b: Bounding, node: Node) -> Found:
    value = first(node)
    rows, axis = b.of(value), node.attrs.get("axis", 1)
    if rows is None:
        return ()
    dims = b.dims(value)
    axis += len(dims) if axis < 0 else 0  # up to the rank itself: all before, nothing behind
    ends = [*dims[:axis]], [*dims[axis:]]
    part = 0 if rows.axis < axis else 1
    place = rows.axis - (0 if part == 0 else axis)
    if any(d != 1 for d in dims[: rows.axis]) or (part == 1 and any(d != 1 for d in ends[0])):
        raise refusal(node)
    return [Rows(part, _scaled(node, rows.count, _bound(ends[part][place + 1 :]), 1))]


def _bound(sizes: Sequence[Size]) -> int:
    return math.prod(s.bound if isinstance(s, Count) else s for s in sizes)


def _scaled(node: Node, count: Count, times: int, over: int) -> Count:
    if not over or count.factor * times % over:
        raise refusal(node)
    return Count(count.base, count.most, count.factor * times // over)


def _reshape(b: Bounding, node: Node) -> Found:
    value, target = first(node), b.integers(node.inputs[1])
    rows = b.of(value)
    if rows is None and (target is None or not any(isinstance(t, Count) for t in target)):
        return ()
    if rows is None or target is None:
        raise refusal(node)
    dims, keep = b.dims(value), not node.attrs.get("allowzero")
    want: list[Size] = [dims[i] if t == 0 and keep else t for i, t in enumerate(target)]
    missing = [i for i, t in enumerate(want) if t == -1]
    counts = [i for i, t in enumerate(want) if isinstance(t, Count)]
    total, rest = _bound(dims), _bound([t for t in want if t != -1])
    if missing and (not rest or total % rest):
        raise refusal(node)
    whole = [
        total // rest if t == -1 else t.bound if isinstance(t, Count) else int(t) for t in want
    ]
    at = (counts or missing or [-1])[0]
    if at < 0 or len(counts) > 1 or math.prod(whole) != total:
        raise refusal(node)
    if all(d == 1 for d in (*dims[: rows.axis], *want[:at])):
        found = _scaled(node, rows.count, _bound(dims[rows.axis + 1 :]), math.prod(whole[at + 1 :]))
    elif at == rows.axis and want[:at] == dims[:at]:
        found = _scaled(node, rows.count, _bound(dims[at + 1 :]), math.prod(whole[at + 1 :]))
    else:
        raise refusal(node)
    if counts and want[at] != found:
        raise refusal(node)
    node.set_input(1, b.static(whole))
    return [Rows(at, found)]


# ---- places


def _from_front(b: Bounding, indices: Value, count: Count) -> Value:
    """Places that may count from the end of the rows that are there, counted from the front."""
    if indices.const is not None:
        if indices.const.size and indices.const.min() < 0:
            raise Unbounded(
                tr("a negative index counts from the end of an axis whose size depends on data")
            )
        return indices
    length = b.write.shaped(b.number(count))  # a scalar: indices keep their rank, which may be 0
    if indices.dtype is not DType.I64:
        length = b.write("Cast", length, to=indices.dtype)
    zero = np.zeros((), indices.type.dtype.np)
    return b.write(
        "Where", b.write("Less", indices, zero), b.write("Add", indices, length), indices
    )


def _fronted(b: Bounding, indices: Value, rows: Rows) -> Value:
    """The same with the indices' own open rows."""
    out, own = _from_front(b, indices, rows.count), b.of(indices)
    return b.mark(out, own) if own else out


def _gather(b: Bounding, node: Node) -> Found:
    data, indices = first(node), node.inputs[1]
    rows, own = b.of(data), b.of(indices)
    axis = normalise_axis(node.attrs.get("axis", 0), rank_of(data))
    if rows and rows.axis == axis and indices is not None:
        node.set_input(1, _fronted(b, indices, rows))
        return [own and Rows(axis + own.axis, own.count)]
    if rows and own:
        raise refusal(node)
    if own:
        return [Rows(axis + own.axis, own.count)]
    if rows:
        behind = rows.axis > axis
        return [Rows(rows.axis + (rank_of(indices) - 1 if behind else 0), rows.count)]
    return ()


def _scatter_elements(b: Bounding, node: Node) -> Found:
    data, indices, updates = node.inputs
    assert data is not None and updates is not None
    rows, own = b.of(data), b.of(indices)
    if own != b.of(updates) or indices is None:
        raise refusal(node)
    whole = _whole_rows(node)
    places = whole or indices
    axis = normalise_axis(node.attrs.get("axis", 0), rank_of(data))
    if rows and rows.axis == axis:
        places = _fronted(b, places, rows)
    elif rows:
        raise refusal(node)
    places = b.masked(places, NOWHERE)
    if whole is None:
        node.set_input(1, places)
        return [rows]
    out = b.write("ScatterND", data, b.write.shaped(places, places.type.size, 1), updates)
    b.replace(node, b.mark(out, rows) if rows else out)
    return None


def _whole_rows(node: Node) -> Value | None:
    """An index for each row, which ScatterElements wants repeated for each element of it."""
    data, indices, updates = node.inputs
    assert data is not None and indices is not None and updates is not None
    made, behind = indices.producer, data.type.dims[1:]
    if made is None or made.op != "Expand" or node.attrs.get("axis", 0) != 0:
        return None
    places = first(made)
    single = rank_of(places) == rank_of(data) and math.prod(_ints(places.type.dims[1:])) == 1
    same = behind == indices.type.dims[1:] == updates.type.dims[1:]
    plain = node.attrs.get("reduction", "none") == "none"
    return places if single and same and plain else None


def _ints(dims: Sequence[object]) -> list[int]:
    return [d for d in dims if isinstance(d, int)]


def _scatter_nd(b: Bounding, node: Node) -> Found:
    rows, own, updates = (b.of(v) for v in node.inputs)
    if rows or own != updates or (own and own.axis != 0):
        raise refusal(node)
    if own and node.inputs[1] is not None:
        node.set_input(1, b.masked(node.inputs[1], NOWHERE))
    return [None]


# ---- sizes asked for


def _expand(b: Bounding, node: Node) -> Found:
    value, target = first(node), b.integers(node.inputs[1])
    rows = b.of(value)
    counts = [] if target is None else [i for i, t in enumerate(target) if isinstance(t, Count)]
    if rows is None and not counts:
        return ()
    if target is None or len(counts) > 1:
        raise refusal(node)
    rank = max(rank_of(value), len(target))
    found = Rows(counts[0] + rank - len(target), target[counts[0]]) if counts else None
    if rows:
        here = Rows(rows.axis + rank - rank_of(value), rows.count)
        at = here.axis - rank + len(target)
        if found not in (None, here) or (found is None and at >= 0 and target[at] != 1):
            raise refusal(node)
        found = here
    node.set_input(1, b.static(list(target)))
    return [found]


def _constant(b: Bounding, node: Node) -> Found:
    target = b.integers(node.inputs[0])
    counts = [] if target is None else [i for i, t in enumerate(target) if isinstance(t, Count)]
    if not counts or target is None:
        return alone(b, node)
    if len(counts) > 1:
        raise refusal(node)
    given = node.attrs.get("value")
    element = np.zeros((), np.float32) if given is None else np.asarray(given).reshape(())
    made = b.write("Expand", element, b.static(list(target)))
    b.replace(node, b.mark(made, Rows(counts[0], target[counts[0]])))
    return None


def _range(b: Bounding, node: Node) -> Found:
    """0, 1, … below a count."""
    start, limit, step = (b.integers(v) for v in node.inputs)
    if limit is None or not isinstance(limit.item(), Count):
        return alone(b, node)
    if start is None or step is None or (start.item(), step.item()) != (0, 1):
        raise refusal(node)
    count = limit.item()
    b.replace(node, b.mark(b.graph.constant(np.arange(count.bound)), Rows(0, count)))
    return None


def _split(b: Bounding, node: Node) -> Found:
    rows = b.of(first(node))
    if rows and rows.axis == normalise_axis(node.attrs.get("axis", 0), rank_of(node.inputs[0])):
        raise refusal(node)
    return [rows for _ in node.outputs]


ROWS: dict[str, Rule] = {
    "ConstantOfShape": _constant,
    "Expand": _expand,
    "Flatten": _flatten,
    "Gather": _gather,
    "Gemm": _product,
    "Identity": elementwise,
    "MatMul": _product,
    "Range": _range,
    "Reshape": _reshape,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
    "Split": _split,
    "Squeeze": _squeeze,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}
