"""Rotary positions, spelled out by exporters, become one operator.

    x·c + concat(−x₂, x₁)·s                   TurnPairs of numbers half a row apart
    x·c + view(stack(−x_odd, x_even))·s       TurnPairs of neighbours
    concat(q_:p, TurnPairs(q_p:, c, s))       TurnPairs(q, concat(1, c), concat(0, s)): the first p
                                              rows, as of class tokens, are turned by nothing

Before Transposes sink, which pass the operator but not its parts. Behind that, equal angles become
one constant.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from lite_messages import tr

from ..ir import Graph, Journal, Node, Value
from ._core import C, Match, P, Skip, graph_pass, no_match, rule, skip
from ._rewrite import constant_like, rank_of, static_shape

#: Axes that the operator's kernel walks.
_AXES = 4


def _spelled(turned: P) -> list[P]:
    return [P("Add", P("Mul", "x", "c"), P("Mul", turned, "s"))]


def _sized(*args: P | str, name: str = "") -> P:
    return P(("Unsqueeze", "Reshape"), *args, name=name, more=True)


@rule("recompose-rotary")
class recompose_rotary:
    patterns = [
        *_spelled(P("Concat", P("Neg", "b"), "a", name="join")),
        *_spelled(
            P("Reshape", P("Concat", _sized(P("Neg", "b")), _sized("a"), name="join"), "shape")
        ),
    ]

    def check(self, graph: Graph, m: Match) -> Skip | None:
        found = _pairs(m)
        if found is None:
            return no_match(m.root)
        x, cos, sin, _ = found
        if cos.const is None or sin.const is None:
            return skip(tr("the angles are not constant"), m.root)
        shape, given = x.shape or (), cos.const.shape
        fits = len(given) <= len(shape) <= _AXES and given == sin.const.shape
        repeats = all(n in (1, size) for n, size in zip(given[::-1], shape[::-1]))
        if not (fits and repeats) or given[-1:] != shape[-1:]:
            return skip(tr("the angles do not repeat along whole rows of up to four axes"), m.root)
        return None

    def rewrite(self, graph: Graph, m: Match) -> Node:
        found = _pairs(m)
        assert found is not None
        x, cos, sin, interleaved = found
        return graph.replace(m.nodes, "TurnPairs", [x, cos, sin], {"interleaved": interleaved})


@rule("recompose-rotary-prefix")
class recompose_rotary_prefix:
    patterns = [
        P(
            "Concat",
            P("Slice", "q", more=True, name="head"),
            P("TurnPairs", P("Slice", "q", more=True, name="tail"), C("c"), C("s"), name="turn"),
            name="join",
        )
    ]

    def check(self, graph: Graph, m: Match) -> Skip | None:
        rank = rank_of(m.q)
        head, tail = _cut(m.head), _cut(m.tail)
        axis = int(m.join.attrs["axis"])
        size = None if m.q.shape is None or not rank else m.q.shape[axis % rank]
        if rank is None or head is None or tail is None or not isinstance(size, int):
            return no_match(m.root)
        axes = {axis % rank, head.axis % rank, tail.axis % rank}
        whole = head.range(size) + tail.range(size) == [*range(size)]
        if len(axes) != 1 or not whole or axis % rank == rank - 1:
            return no_match(m.root)
        return None

    def rewrite(self, graph: Graph, m: Match) -> Node:
        rank = rank_of(m.q) or 0
        axis, head = int(m.join.attrs["axis"]) % rank, _cut(m.head)
        assert head is not None and m.q.shape is not None
        size = m.q.shape[axis]
        assert isinstance(size, int)
        count = len(head.range(size))
        angles = [
            constant_like(graph, _after(count, size, axis, rank, value.const, fill), value, "whole")
            for value, fill in ((m.c, 1), (m.s, 0))
        ]
        return graph.replace(m.nodes, "TurnPairs", [m.q, *angles], dict(m.turn.attrs))


@graph_pass("merge-angles")
def merge_angles(graph: Graph, journal: Journal) -> int:
    """Equal angles become one constant: layers have them in common, but each is given its own when
    rows are put before them or a Transpose passes."""
    first: dict[tuple[Any, ...], Value] = {}
    count = 0
    for node in graph.nodes:
        if node.op != "TurnPairs":
            continue
        given = [(at, v, first.setdefault(_contents(v), v)) for at, v in _angles_of(node)]
        changed = [(at, known) for at, value, known in given if known is not value]
        for at, known in changed:
            node.set_input(at, known)
        if changed:
            journal.rewrote("merge-angles", (node.name,), (node.name,))
            count += 1
    return count


def _angles_of(node: Node) -> list[tuple[int, Value]]:
    return [(at, v) for at, v in enumerate(node.inputs) if at and v is not None]


def _contents(value: Value) -> tuple[Any, ...]:
    array = value.const
    if array is None:
        return (id(value),)
    return array.dtype, array.shape, hashlib.blake2b(array.tobytes()).digest()


def _after(count: int, size: int, axis: int, rank: int, table: np.ndarray, fill: int) -> np.ndarray:
    """Angles for `size` rows of which the first `count` have `fill`."""
    table = table.reshape((1,) * (rank - table.ndim) + table.shape)
    shape = list(table.shape)
    shape[axis] = size - count
    rows = np.broadcast_to(table, shape)
    shape[axis] = count
    return np.concatenate([np.full(shape, fill, table.dtype), rows], axis)


class _Cut:
    """What a Slice or a part of a Split takes of an axis, from `begin` to `end` by `step`."""

    def __init__(self, axis: int, begin: int, end: int, step: int) -> None:
        self.axis, self.begin, self.end, self.step = axis, begin, end, step

    def range(self, size: int) -> list[int]:
        return list(range(size)[self.begin : self.end : self.step])


def _cut(node: Node | None) -> _Cut | None:
    """Of a Slice of one axis, whose numbers are constants."""
    if node is None or node.op != "Slice":
        return None
    given = [None if v is None else v.const for v in map(node.input, (1, 2, 3, 4))]
    numbers = [int(c.item()) for c in given if c is not None and c.size == 1]
    if len(numbers) == 3 and node.input(4) is None:
        numbers.append(1)
    if len(numbers) != 4:
        return None
    begin, end, axis, step = numbers
    return _Cut(axis, begin, end, step)


def _part(value: Value) -> tuple[Value, list[int]] | None:
    """x and the numbers of its rows that a value has."""
    node = value.producer
    x = node.input(0) if node is not None else None
    size = x.shape[-1] if x is not None and x.shape else None
    if node is None or x is None or not isinstance(size, int):
        return None
    rank = rank_of(x) or 1
    if node.op == "Split" and int(node.attrs.get("axis", 0)) % rank == rank - 1:
        widths = [v.shape[-1] if v.shape else None for v in node.outputs]
        if widths != [size // 2] * 2:
            return None
        at = next(i for i, v in enumerate(node.outputs) if v is value)
        return x, [*range(at * size // 2, (at + 1) * size // 2)]
    cut = _cut(node)
    return (x, cut.range(size)) if cut and cut.axis % rank == rank - 1 else None


def _pairs(m: Match) -> tuple[Value, Value, Value, int] | None:
    """x, its cosines and sines, and whether pairs are neighbours."""
    first, second = _part(m.a), _part(m.b)
    if first is None or second is None or first[0] is not second[0]:
        return None
    x = first[0]
    if x is not m.x and x is not m.c:
        return None
    cos = m.c if x is m.x else m.x
    shape, joined = static_shape(x), static_shape(m.join.output)
    size, axis = len(first[1]) + len(second[1]), int(m.join.attrs["axis"])
    half = size // 2
    if "shape" not in m.bound:
        last = axis % (rank_of(x) or 1) == (rank_of(x) or 0) - 1
        halves = first[1] + second[1] == [*range(size)] and len(first[1]) == half
        return (x, cos, m.s, 0) if last and halves else None
    if shape is None or joined != (*shape[:-1], half, 2) or axis % len(joined) != len(shape):
        return None
    parts = first[1] == [*range(0, size, 2)] and second[1] == [*range(1, size, 2)]
    whole = parts and static_shape(m.root.output) == shape and shape[-1] == size
    return (x, cos, m.s, 1) if whole else None
