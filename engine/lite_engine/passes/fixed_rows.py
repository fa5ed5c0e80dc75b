"""Detections in a fixed number of rows: for programs, whose sizes must be known before they run.

Results whose number of rows depends on data get as many rows as there can be: those that are not
there come last and hold −1, a label (or index) that nothing has. Where other layers read what a
suppression found, those work on that many rows, too (ops/bounds).
"""

from __future__ import annotations

from collections.abc import Mapping

from ..ir import Graph, Node, Shape
from ..ops import find_op, is_specialised, specialise
from ..ops.bounds import Unbounded, bounded, bounded_so_far, is_open


def fixed_rows(graph: Graph, shapes: Mapping[str, Shape] | None = None) -> Graph:
    """The graph, or a copy in which all sizes are fixed as soon as those of its inputs are (to
    `shapes`, where they are given). A size that has no bound stays open."""
    return with_fixed_rows(graph, shapes)[0]


def specialised_rows(graph: Graph, shapes: Mapping[str, Shape] | None = None) -> Graph:
    """`specialise` of the graph with `fixed_rows`. Raises ShapeError as that does."""
    out, fixed = with_fixed_rows(graph, shapes)
    return specialise(out, shapes) if fixed is None else fixed


def with_fixed_rows(
    graph: Graph, shapes: Mapping[str, Shape] | None = None
) -> tuple[Graph, Graph | None]:
    """(what `fixed_rows` says, `specialise` of it where that was needed to tell)."""
    out = graph
    if any(_ends(n) for n in graph.nodes):
        out = graph.copy()
        for node in filter(_ends, out.nodes):
            node.attrs["padded"] = 1
    given = shapes or {}
    if any(not v.type.is_static and v.name not in given for v in out.inputs):
        return out, None
    fixed = specialise(out, shapes)
    if not any(is_open(v) for node in fixed.nodes for v in node.outputs):
        return out, fixed
    try:
        return bounded(fixed), None
    except Unbounded:
        return out, fixed  # whoever asks learns which layers then run where


def rows_so_far(
    graph: Graph, shapes: Mapping[str, Shape] | None = None
) -> tuple[Graph, dict[str, str]]:
    """`specialised_rows` as far as sizes have bounds, and why layers have none, by name. Where
    there are such layers, the graph is to be looked at only. Raises ShapeError."""
    out, fixed = with_fixed_rows(graph, shapes)
    fixed = specialise(out, shapes) if fixed is None else fixed
    if not any(is_open(v) for node in fixed.nodes for v in node.outputs):
        return fixed, {}
    fixed, refused = bounded_so_far(fixed)
    return fixed, {name: error.what for name, error in refused.items()}


def is_settled(graph: Graph) -> bool:
    """Whether `specialised_rows` would give a mere copy."""
    return is_specialised(graph) and not any(map(_ends, graph.nodes))


def _ends(node: Node) -> bool:
    """Can pad its rows, and no other node reads them."""
    op = find_op(node.op)
    return op is not None and "padded" in op.attrs and not any(v.readers for v in node.outputs)
