"""Detections in a fixed number of rows: for programs, whose sizes must be known before they run.

Where only the caller reads what a suppression found, it may as well get as many rows as there can
be: those that are not used come last, with label −1, which no class has.
"""

from __future__ import annotations

from ..ir import Graph

_PADDABLE = ("multiclass_nms",)


def fixed_rows(graph: Graph) -> Graph:
    """The graph, or a copy whose last suppressions pad what they found."""
    if not any(n.op in _PADDABLE for n in graph.nodes):
        return graph
    out = graph.copy()
    for node in out.nodes:
        if node.op in _PADDABLE and not any(v.readers for v in node.outputs):
            node.attrs["padded"] = 1
    return out
