"""Selections that together take all of an axis become one Split, whose parts are views.

Gather(Reshape(x, (…, n, s)), i)    Split(x, n)[i], for the i of an x (…, n·s)
Slice(x, a, b)                      Split(x)[i], for slices that together are all of the last axis,
                                    or of one of those into which a Reshape has split it
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..ir import Dim, Graph, Journal, Node, Shape, Value
from ..ops._helpers import elements_of, reshape_target
from ._core import graph_pass, infer_new
from ._rewrite import known_shape


@dataclass(frozen=True)
class Cuts:
    """Slices, in their order, that together take all of an axis, and how much each takes."""

    value: Value
    axis: int
    parts: list[tuple[Node, int]]


@graph_pass("recompose-splits", local=True)
def recompose_splits(graph: Graph, journal: Journal) -> int:
    """Parts of one value, as queries, keys and values that one product made are exported."""
    count = 0
    for node in list(graph.nodes):
        if node.op == "Reshape" and not graph.is_output(node.output) and (found := _gathers(node)):
            _split_reshaped(graph, node, found)
            journal.rewrote("recompose-splits", tuple(n.name for n in found.values()))
            count += 1
    for value in [v for n in graph.nodes for v in n.outputs]:
        if cuts := _slices(value):
            _split_sliced(graph, cuts)
            journal.rewrote("recompose-splits", tuple(n.name for n, _ in cuts.parts))
            count += 1
    if count:
        graph.remove_unread()
    return count


def _gathers(reshape: Node) -> dict[int, Node]:
    """By index: the readers of a Reshape, where each takes one part of the same axis, and the parts
    lie side by side in the last axis of what is reshaped."""
    x, split = known_shape(reshape.input(0)), known_shape(reshape.output)
    readers = reshape.output.readers
    if not x or not split or len(readers) < 2:
        return {}
    axes = {int(r.attrs.get("axis", 0)) % len(split) for r in readers if r.op == "Gather"}
    if len(axes) != 1 or any(r.op != "Gather" for r in readers):
        return {}
    (axis,) = axes
    count, width = split[axis], _width(split, axis)
    if not isinstance(count, int) or count < 2 or width is None:
        return {}
    if elements_of(split[:axis]) != elements_of(x[:-1]):
        return {}
    part = (*split[:axis], width // count)
    views = [((*split[:axis], width), x)]
    views += [(r.output.shape or (None, None), part) for r in readers]
    if any(reshape_target(shape, source) is None for shape, source in views):
        return {}
    found: dict[int, Node] = {}
    for reader in readers:
        index = reader.input(1)
        if index is None or index.const is None or index.const.ndim:
            return {}
        found[int(index.const) % count] = reader
    return found if len(found) == len(readers) else {}


def _width(split: tuple[Dim, ...], axis: int) -> int | None:
    """The product of the sizes from an axis on, where those are numbers above 0."""
    numbers = [n for n in split[axis:] if isinstance(n, int) and n > 0]
    return math.prod(numbers) if len(numbers) == len(split) - axis else None


def _split_reshaped(graph: Graph, reshape: Node, parts: dict[int, Node]) -> None:
    """A Split behind a Reshape that keeps the last axis whole, and each part in its old shape."""
    source, shape = reshape.input(0), known_shape(reshape.output)
    assert source is not None and shape is not None
    axis = next(int(n.attrs.get("axis", 0)) for n in parts.values()) % len(shape)
    sources = tuple(dict.fromkeys(s for n in (reshape, *parts.values()) for s in n.sources))
    sizes = _target(graph, (*shape[:axis], _width(shape, axis)), source)
    whole = graph.add("Reshape", [source, sizes], before=reshape, sources=sources)
    count = shape[axis]
    assert isinstance(count, int)
    split = graph.add(
        "Split", [whole.output], {"axis": axis, "num_outputs": count},
        outputs=count, before=reshape, sources=sources,
    )  # fmt: skip
    infer_new([whole, split])
    for index, node in parts.items():
        part = split.outputs[index]
        graph.replace([node], "Reshape", [part, _target(graph, node.output.shape, part)])


def _target(graph: Graph, shape: Shape | None, source: Value) -> Value:
    return graph.constant(np.array(reshape_target(shape or (), source.shape), np.int64))


def _slices(value: Value) -> Cuts | None:
    """The Slices that are all readers of a value and take all of an axis: of the last one, or of
    one from which on a Reshape has split the last axis of what it reads."""
    shape, readers = known_shape(value), value.readers
    if not shape or len(readers) < 2 or any(r.op != "Slice" for r in readers):
        return None
    axes, found = set(), []
    for reader in readers:
        numbers = [None if v is None else v.const for v in reader.inputs[1:]]
        if len(numbers) < 3 or any(n is None or n.size != 1 for n in numbers):
            return None
        start, end, axis, *step = (int(n.ravel()[0]) for n in numbers if n is not None)
        axis %= len(shape)
        size = shape[axis]
        if not isinstance(size, int) or step not in ([], [1]):
            return None
        axes.add(axis)
        found.append((*slice(start, end).indices(size)[:2], reader))
    found.sort(key=lambda part: part[:2])
    ends = [0, *(last for _, last, _ in found)]
    whole = [first for first, *_ in found] == ends[:-1] and ends[-1] == size
    if len(axes) > 1 or not whole or not _splits_last(value, axis):
        return None
    return Cuts(value, axis, [(node, last - first) for first, last, node in found])


def _splits_last(value: Value, axis: int) -> bool:
    """Whether an axis is the last, or one of those into which a Reshape splits the last axis."""
    shape, node = known_shape(value) or (), value.producer
    if axis == len(shape) - 1:
        return True
    if node is None or node.op != "Reshape":
        return False
    source, width = known_shape(node.input(0)), _width(shape, axis)
    if not source or width is None or source[-1] != width:
        return False
    return reshape_target((*shape[:axis], width), shape) is not None and all(
        reshape_target(r.output.shape or (None, None), (*shape[:axis], width)) is not None
        for r in value.readers
    )


def _split_sliced(graph: Graph, cuts: Cuts) -> None:
    value, axis = cuts.value, cuts.axis
    shape, nodes = known_shape(value), [n for n, _ in cuts.parts]
    assert shape is not None
    first = min(nodes, key=graph.nodes.index)
    sources = tuple(dict.fromkeys(s for n in nodes for s in n.sources))
    each, view = 1, axis < len(shape) - 1
    if view:
        each = math.prod(n for n in shape[axis + 1 :] if isinstance(n, int))
        sizes = _target(graph, (*shape[:axis], _width(shape, axis)), value)
        whole = graph.add("Reshape", [value, sizes], before=first, sources=sources)
        infer_new([whole])
        value = whole.output
    widths = graph.constant(np.array([width * each for _, width in cuts.parts], np.int64))
    split = graph.add(
        "Split", [value, widths], {"axis": -1}, outputs=len(nodes), before=first, sources=sources
    )
    infer_new([split])
    for node, part in zip(nodes, split.outputs, strict=True):
        if view:
            graph.replace([node], "Reshape", [part, _target(graph, node.output.shape, part)])
        else:
            graph.replace([node], "Identity", [part])
