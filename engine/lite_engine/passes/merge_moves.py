"""Slices of one value that are joined again, and the views around them, become one Gather of rows.

Concat(Slice(x, s:), Slice(x, :s))     Gather(Reshape(x, (rows, c)), i)

That is how a cyclic shift of windows is exported (Liu et al., "Swin Transformer", 2021), one axis
after the other, and the merging of four neighbours. Where each of the rows ends up is found by
sending their numbers through the nodes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..errors import ShapeError
from ..ir import Graph, Journal, Node, Value
from ..ops import get_op, run_node
from ..ops._helpers import reshape_target, split_symbol
from ._core import graph_pass, infer_new
from ._rewrite import known_shape, static_shape
from .merge_views import RESHAPES

_VIEWS = (*RESHAPES, "Transpose", "Identity")
#: Numbers of a row, at least: shorter ones are copied faster from place to place.
_LEAST_ROW = 8
#: Values with more numbers stay as they are: each is followed.
_MOST = 1 << 24


@graph_pass("merge-moves", local=True)
def merge_moves(graph: Graph, journal: Journal) -> int:
    count = 0
    members = {id(n) for n in graph.nodes}
    for node in reversed(list(graph.nodes)):
        if node.op != "Concat" or id(node) not in members:
            continue
        moves = _moves(graph, node)
        source = _source(moves)
        if source is None or _in_channels_last(source):
            continue
        rows = _rows(moves, source)
        if rows is None:
            continue
        journal.rewrote("merge-moves", tuple(n.name for n in moves), (moves[-1].name,))
        members -= {id(n) for n in moves}
        _gather(graph, moves, source, *rows)
        count += 1
    return count


def _moves(graph: Graph, join: Node) -> list[Node]:
    """The nodes that only move numbers, and that nothing else reads: before a Concat, and views
    behind it. In the graph's order."""
    found = {id(join): join}
    grown = True
    while grown:
        grown = False
        for node in list(found.values()):
            for value in _data(node):
                maker = value.producer
                if maker is None or id(maker) in found or graph.is_output(value):
                    continue
                inner = all(id(r) in found for r in value.readers)
                if inner and maker.op in (*_VIEWS, "Slice", "Concat"):
                    found[id(maker)] = maker
                    grown = True
    last = join
    while (reader := graph.sole_reader(last.output)) is not None and reader.op in _VIEWS:
        last = reader
        found[id(last)] = last
    return sorted(found.values(), key=graph.position)


def _data(node: Node) -> list[Value]:
    """What a node moves."""
    inputs = node.inputs if node.op == "Concat" else node.inputs[:1]
    return [v for v in inputs if v is not None]


def _source(moves: list[Node]) -> Value | None:
    """The one value that all of it comes from, of which parts are taken."""
    made = {id(n.output) for n in moves}
    read = {id(v): v for n in moves for v in _data(n) if id(v) not in made}
    if len(read) != 1 or not any(n.op == "Slice" for n in moves):
        return None
    (source,) = read.values()
    shape = known_shape(source)
    fixed = shape is not None and all(isinstance(size, int) for size in shape[1:])
    known = all(v.const is not None for n in moves if n.op != "Concat" for v in n.inputs[1:] if v)
    written = fixed and reshape_target(moves[-1].output.shape or (None, None), ()) is not None
    whole = written and known and all(_keeps_open_axes(n) for n in moves)
    return source if source.const is None and whole else None


def _keeps_open_axes(node: Node) -> bool:
    """A Slice of an open axis takes another part of it at another size."""
    if node.op != "Slice":
        return True
    x, axes = node.input(0), node.input(3)
    shape = (x.shape if x is not None else None) or ()
    cut = range(len(shape)) if axes is None or axes.const is None else axes.const.ravel()
    return all(isinstance(shape[axis], int) for axis in cut)


def _in_channels_last(value: Value) -> bool:
    """Whether it comes from a layer that lays channels last, which rows of another order undo."""
    for _ in range(8):
        node = value.producer
        if node is None or node.op == "Transpose":
            return False
        layout = get_op(node.op).layout
        if layout not in ("elementwise", "view"):
            return layout == "channels_last"
        before = [v for v in node.inputs if v is not None and v.const is None]
        if not before:
            return False
        value = before[0]
    return False


def _rows(moves: list[Node], source: Value) -> tuple[int, np.ndarray] | None:
    """(numbers of a row, the rows of `source` in the order of the result); None for short rows.
    Where the number of samples is open, those of one sample, if each keeps its own."""
    shape = static_shape(source)
    if shape is not None:
        return _followed(moves, source, shape)
    sample = _sample(source)
    one = _followed(moves, source, sample)
    if one is None:
        return None
    width, rows = one
    count = math.prod(sample) // width
    for n in (2, 3):
        several = _followed(moves, source, (n * sample[0], *sample[1:]))
        each = np.concatenate([rows + i * count for i in range(n)])
        if several is None or several[0] != width or not np.array_equal(several[1], each):
            return None
    return one


def _sample(source: Value) -> list[int]:
    """What a value of an open number of samples holds of each: (49, 8) of (49*(N), 8)."""
    first, *inner = source.shape or ()
    return [split_symbol(first)[0], *(size for size in inner if isinstance(size, int))]


def _followed(
    moves: list[Node], source: Value, shape: Sequence[int]
) -> tuple[int, np.ndarray] | None:
    """`_rows` of a source of this shape."""
    size = math.prod(shape)
    if not 0 < size <= _MOST:
        return None
    arrays = {id(source): np.arange(size, dtype=np.int32).reshape(shape)}
    for node in moves:
        inputs = [
            None if v is None else arrays.get(id(v), v.const) for v in node.inputs
        ]  # fmt: skip
        try:
            arrays[id(node.output)] = run_node(node, inputs)[0]
        except ShapeError:
            return None  # views that do not fit this number of samples
    places = arrays[id(moves[-1].output)]
    width = math.gcd(shape[-1], places.shape[-1]) if places.ndim and places.size else 0
    if width < _LEAST_ROW:
        return None
    rows = places.reshape(-1, width)
    whole = (rows[:, 0] % width == 0).all() and (np.diff(rows, axis=1) == 1).all()
    return (width, rows[:, 0] // width) if whole else None


def _gather(graph: Graph, moves: list[Node], source: Value, width: int, rows: np.ndarray) -> None:
    last = moves[-1]
    sources = tuple(dict.fromkeys(s for n in moves for s in n.sources))
    samples = [] if static_shape(source) else [-1]
    count = math.prod(_sample(source)) // width if samples else -1
    sizes = graph.constant(np.array([*samples, count, width], np.int64))
    flat = graph.add("Reshape", [source, sizes], before=last, sources=sources)
    taken = graph.constant(rows.astype(np.int64))
    picked = graph.add(
        "Gather", [flat.output, taken], {"axis": len(samples)}, before=last, sources=sources
    )  # fmt: skip
    infer_new([flat, picked])
    target = reshape_target(last.output.shape or (), picked.output.shape)
    graph.replace(moves, "Reshape", [picked.output, graph.constant(np.array(target, np.int64))])
