"""Other input sizes for a graph whose sizes are fixed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from lite_messages import tr

from ..errors import LiteError, UsageError
from ..importers import fix_shapes
from ..ir import Graph, Node, Shape, Value, format_shape
from ..ops import find_op, infer_node, infer_types, specialise


@dataclass(frozen=True)
class Refusal:
    """A layer that cannot have the new sizes, and why."""

    layer: str
    op: str
    why: str


@dataclass
class Resized:
    """A graph with other input sizes. `adapted` are layers whose constant sizes were replaced by
    "as the input has it"; the graph is of use only when `refused` is empty."""

    graph: Graph
    adapted: list[str] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)


def resize(graph: Graph, shapes: Mapping[str, Shape]) -> Resized:
    """The graph with inputs of these shapes, fixed or symbolic ("batch"); what cannot follow is
    listed. Raises ModelFormatError for an unknown input, UsageError for another rank."""
    copy = graph.copy()
    infer_types(copy)
    by_name = {v.name: v for v in copy.inputs}
    old = {id(v): v.shape for n in copy.nodes for v in n.outputs}
    old |= {id(v): v.shape for v in copy.inputs}
    fix_shapes(copy, {name: () for name in shapes if name not in by_name})
    for name, shape in shapes.items():
        known = by_name[name].shape
        if known is not None and len(known) != len(shape):
            raise UsageError(
                tr(
                    "expected {rank} sizes for {name} ({known}), got {count}",
                    rank=len(known),
                    name=name,
                    known=format_shape(known),
                    count=len(shape),
                )
            )
        by_name[name].shape = tuple(shape)
    made = Resized(copy)
    lost: set[int] = set()
    for node in copy.nodes:
        inputs = [v for v in node.inputs if v is not None]
        if any(id(v) in lost for v in inputs):  # told once, where it begins
            lost |= {id(v) for v in node.outputs}
        elif why := _follow(node, old, made):
            made.refused.append(Refusal(node.name, node.op, why))
            lost |= {id(v) for v in node.outputs}
    if not made.refused and all(v.type.is_static for v in copy.inputs):
        _compute(made)
    return made


def _compute(made: Resized) -> None:
    """Sizes that the graph itself computes, with these inputs; the first layer that they refuse."""
    try:
        fixed = specialise(made.graph.copy())
    except LiteError as error:
        text = str(error)  # it begins with the layer
        node = next((n for n in made.graph.nodes if text.startswith(f"{n.name} ({n.op}")), None)
        layer, op = (node.name, node.op) if node else (str(error.where), "")
        made.refused.append(Refusal(layer, op, text.partition("): ")[2] or text))
        return
    for value, known in zip(made.graph.outputs, fixed.outputs):
        value.shape = known.shape


def rebatch(graph: Graph, batch: int | str) -> Resized:
    """The graph with another first axis of every input (a number, or a symbol like "N")."""
    shapes = {v.name: (batch, *v.shape[1:]) for v in graph.inputs if v.shape}
    return resize(graph, shapes)


def _follow(node: Node, old: Mapping[int, Shape | None], made: Resized) -> str:
    """Infers a node anew; the reason where it does not fit."""
    before = [v.shape for v in node.outputs]
    if node.op == "Reshape":
        _adapt(node, old, made)
    for value in node.outputs:
        value.shape = None
    try:
        types = infer_node(node)
    except LiteError as error:
        return str(error.what)
    for value, info in zip(node.outputs, types):
        value.dtype, value.shape = info.dtype, info.shape
    x, op = node.input(0), find_op(node.op)
    was, now = (None, None) if x is None else (old.get(id(x)), x.shape)
    other_batch = was and now and was[0] != now[0]
    first = before[0][:1] if before[0] is not None else ("unknown",)
    kept = node.output.shape == before[0] and all(isinstance(n, int) for n in first)
    if was and now and not isinstance(was[0], int):  # any batch becomes this one
        kept = kept and first != now[:1]
    if other_batch and kept and not (op and op.of_shapes):
        return tr(
            "its output keeps the shape {shape} for every batch", shape=format_shape(before[0])
        )
    return ""


def _adapt(node: Node, old: Mapping[int, Shape | None], made: Resized) -> None:
    """Sizes of a Reshape that were those of its input become 0, "as the input has it", or -1, "what
    is left", where only axes of 1 were put in or left out before them."""
    x, target = node.input(0), node.input(1)
    before = None if x is None else old.get(id(x))
    if x is None or not before or x.shape is None or target is None or target.const is None:
        return
    sizes = target.const.ravel().copy()
    for i, (was, now) in enumerate(zip(before, x.shape)):
        if i < len(sizes) and was != now and sizes[i] == was and not node.attrs.get("allowzero"):
            sizes[i] = 0
    if len(moved := _moved(before, x.shape, target.const.ravel())) == 1 and -1 not in sizes:
        sizes[moved] = np.where(sizes[moved] == 0, 0, -1)
    if not np.array_equal(sizes, target.const.ravel()):
        node.set_input(1, Value(made.graph.unique(target.name), const=sizes))
        made.adapted.append(node.name)


def _moved(before: Shape, now: Shape, sizes: np.ndarray) -> list[int]:
    """The axes of the output that are axes of another size now, where a Reshape puts in and leaves
    out axes of 1 only; empty where it does more."""
    axes = [i for i, was in enumerate(before) if was != 1]
    places = [i for i, size in enumerate(sizes) if size != 1]
    if [before[i] for i in axes] != [sizes[i] for i in places]:
        return []
    return [place for i, place in zip(axes, places) if now[i] != before[i]]
