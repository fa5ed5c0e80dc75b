"""Operators in which open rows (bounds.py) meet: found, chosen, joined and reduced."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from lite_messages import tr

from ..ir import DType, Node, Value
from ._bound_rows import Found, first, rank_of, refusal
from ._bounding import Bounding, Count, Rows, Rule, Size, Unbounded
from ._helpers import normalise_axes, normalise_axis


def _found(b: Bounding, node: Node, inputs: Sequence[Value | None], axis: int) -> None:
    """The node again, with as many rows along `axis` as there can be, and how many it found."""
    attrs = {**node.attrs, "padded": 1}
    made = b.graph.add(
        node.op, inputs, attrs, outputs=2, before=node, sources=node.sources,
        name=b.graph.unique(node.name),
    )  # fmt: skip
    b.typed(made)
    values, count = made.outputs
    most = b.dims(values)[axis]
    assert isinstance(most, int), "nothing counts its rows yet"
    b.replace(node, b.mark(values, Rows(axis, Count(count, most))))


def _non_zero(b: Bounding, node: Node) -> Found:
    _found(b, node, [b.masked(first(node), 0)], 1)
    return None


def _suppression(b: Bounding, node: Node) -> Found:
    boxes, scores, *limits = node.inputs
    rows, own = b.of(boxes), b.of(scores)
    if node.attrs.get("padded") and own is None and rows is None:
        return ()  # only the caller reads it (passes/fixed_rows)
    fits = (rows is None and own is None) or (
        rows and own and (rows.axis, own.axis, rows.count) == (1, 2, own.count)
    )
    if not fits or scores is None or any(v is not None and v.const is None for v in limits):
        raise refusal(node)
    _found(b, node, [boxes, b.masked(scores, math.nan), *limits], 0)
    return None


def _lowest(kind: DType) -> float:
    return -math.inf if kind.np.kind == "f" else int(np.iinfo(kind.np).min)


def _highest(kind: DType) -> float:
    return math.inf if kind.np.kind == "f" else int(np.iinfo(kind.np).max)


def _zero(_: DType) -> float:
    return 0


#: What changes nothing, by operator.
NEUTRAL = {
    "ArgMax": _lowest,
    "ArgMin": _highest,
    "ReduceL1": _zero,
    "ReduceL2": _zero,
    "ReduceMax": _lowest,
    "ReduceMean": None,
    "ReduceMin": _highest,
    "ReduceSum": _zero,
    "ReduceSumSquare": _zero,
}


def _reduce(b: Bounding, node: Node) -> Found:
    value, given = first(node), node.input(1)
    rows, rank = b.of(value), rank_of(value)
    if rows is None:
        return ()
    axes = node.attrs.get("axes")
    if node.op.startswith("Arg"):
        axes = [node.attrs.get("axis", 0)]
    elif given is not None:
        axes = None if given.const is None else given.const.tolist()
        if axes is None:
            raise refusal(node)
    if not axes:
        if node.attrs.get("noop_with_empty_axes"):
            return [rows]
        axes = range(rank)
    gone = normalise_axes(list(axes), rank)
    if rows.axis in gone:
        fill = NEUTRAL[node.op]
        if fill is None:
            raise refusal(node)
        node.set_input(0, b.masked(value, fill(value.type.dtype)))
        if node.attrs.get("select_last_index"):
            b.replace(node, _there(b, node, rows.count))
            return None
        return [None]
    kept = node.attrs.get("keepdims", 1)
    shift = 0 if kept else sum(a < rows.axis for a in gone)
    return [Rows(rows.axis - shift, rows.count)]


def _there(b: Bounding, node: Node, count: Count) -> Value:
    """A last index: of equal values, open rows come behind those that are there."""
    found = b.write(node.op, *node.inputs, **node.attrs)
    last = b.write("Sub", b.write.shaped(b.number(count)), np.array(1))
    return b.write("Min", found, last)


def _top_k(b: Bounding, node: Node) -> Found:
    value, wanted = first(node), b.integers(node.inputs[1])
    rows = b.of(value)
    axis = normalise_axis(node.attrs.get("axis", -1), rank_of(value))
    size = None if wanted is None else wanted.item()
    if rows is None and not isinstance(size, Count):
        return ()
    if rows and rows.axis != axis:
        if isinstance(size, Count) or size is None:
            raise refusal(node)
        return [rows, rows]
    if size is None:
        raise refusal(node)
    kind = value.type.dtype
    if node.attrs.get("largest", 1):
        fill = _lowest(kind)
    else:  # NaN counts as the largest
        fill = math.nan if kind.np.kind == "f" else _highest(kind)
    node.set_input(0, b.masked(value, fill))
    node.set_input(1, b.static([size]))
    found = Rows(axis, size) if isinstance(size, Count) else None
    return [found, found]


def _concat(b: Bounding, node: Node) -> Found:
    all_rows = [b.of(v) for v in node.inputs]
    known = [r for r in all_rows if r]
    if not known:
        return ()
    axis = normalise_axis(node.attrs["axis"], rank_of(node.inputs[0]))
    if all(r.axis != axis for r in known):
        if any(r != known[0] for r in all_rows):
            raise refusal(node)
        return [known[0]]
    if any(r.axis != axis for r in known):
        raise refusal(node)
    b.replace(node, _joined(b, node, axis))
    return None


def _joined(b: Bounding, node: Node, axis: int) -> Value:
    """The rows that are there, one input's after the other's."""
    values = [v for v in node.inputs if v is not None]
    sizes = [b.dims(v)[axis] for v in values]
    total = sum(s.bound if isinstance(s, Count) else s for s in sizes)
    places = b.graph.constant(np.arange(total))
    where, first, at = places, b.graph.constant(np.zeros(1, np.int64)), 0
    for i, size in enumerate(sizes):
        if i:  # row r of this input is at first + r in the result and at + r in the whole
            apart = b.write("Sub", np.array([at]), first)
            moved = b.write("Add", places, apart)
            where = b.write("Where", b.write("Less", places, first), where, moved)
        at += size.bound if isinstance(size, Count) else size
        first = b.write("Add", first, _number(b, size))
    whole = b.write("Concat", *values, axis=axis)
    out = b.write("Gather", whole, where, axis=axis)
    return b.mark(out, Rows(axis, Count(first, total)))


def _number(b: Bounding, size: Size) -> Value | np.ndarray:
    return b.number(size) if isinstance(size, Count) else np.array([size])


def _slice(b: Bounding, node: Node) -> Found:
    value = first(node)
    rows, rank = b.of(value), rank_of(value)
    given = [b.integers(v) for v in node.inputs[1:] if v is not None]
    if any(g is None for g in given):
        if rows is None:
            return ()  # without bounds it is refused where its type is asked for
        raise refusal(node)
    starts, ends, *rest = (list(g) for g in given if g is not None)
    axes = normalise_axes(rest[0] if rest else list(range(len(starts))), rank)
    steps = rest[1] if len(rest) > 1 else [1] * len(starts)
    if rows is None:
        if any(isinstance(s, Count) for s in (*starts, *ends)):
            raise refusal(node)
        return ()
    found = rows.count
    if rows.axis in axes:
        at = axes.index(rows.axis)
        found, ends[at] = _piece(b, node, found, starts[at], ends[at], steps[at])
    if any(isinstance(s, Count) for s in (*starts, *ends)):
        raise refusal(node)
    for i, sizes in enumerate((starts, ends, axes, steps), start=1):
        node.set_input(i, b.static(sizes))
    return [Rows(rows.axis, found)]


def _piece(
    b: Bounding, node: Node, count: Count, start: Size, end: Size, step: Size
) -> tuple[Count, int]:
    """The count of a slice along open rows, and where it ends at most."""
    if isinstance(start, Count) or start < 0 or step != 1:
        raise refusal(node)
    if isinstance(end, int) and end < 0:
        raise Unbounded(
            tr("a negative index counts from the end of an axis whose size depends on data")
        )
    kept = b.least(count, end)
    last = kept.bound
    if not start:
        return kept, last
    begun = b.write("Sub", b.number(kept), np.array([start]))
    left = b.write("Max", begun, np.zeros(1, np.int64))
    return Count(left, max(last - start, 0)), last


def _chosen(b: Bounding, node: Node) -> Found:
    """An If, both of whose branches ran."""
    condition = b.write.shaped(first(node))  # a scalar: results keep their rank, which may be 0
    b.replace(node, *[_choice(b, node, condition, *pair) for pair in b.branches(node)])
    return None


def _choice(b: Bounding, node: Node, condition: Value, one: Value, other: Value) -> Value:
    empty = [v.const is not None and not v.const.size for v in (one, other)]
    if empty[0] != empty[1]:
        nothing, value = (one, other) if empty[0] else (other, one)
        dims, size, own = list(nothing.shape or ()), b.dims(value), b.of(value)
        axis = own.axis if own else dims.index(0)
        if len(dims) != len(size) or dims[axis] != 0:
            raise refusal(node)
        zero = np.zeros(1, np.int64)
        counts = _number(b, size[axis])
        pair = (zero, counts) if empty[0] else (counts, zero)
        most = size[axis]
        base = b.write("Where", condition, *pair)
        bound = most.bound if isinstance(most, Count) else most
        kept = b.write("Identity", value)
        return b.mark(kept, Rows(axis, Count(base, bound)))
    rows = b.of(one), b.of(other)
    if one.shape != other.shape or one.dtype != other.dtype or rows[0] != rows[1]:
        raise refusal(node)
    out = b.write("Where", condition, one, other)
    return b.mark(out, rows[0]) if rows[0] else out


MEETINGS: dict[str, Rule] = {
    "Concat": _concat,
    "If": _chosen,
    "NonMaxSuppression": _suppression,
    "NonZero": _non_zero,
    "Slice": _slice,
    "TopK": _top_k,
    **dict.fromkeys(NEUTRAL, _reduce),
}
