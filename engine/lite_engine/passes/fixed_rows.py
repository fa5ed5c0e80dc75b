"""Detections in a fixed number of rows: for programs, whose sizes must be known before they run.

Where only the caller reads what a suppression found, it may as well get as many rows as there can
be: those that are not used come last, with label (or index) −1, which nothing has.
"""

from __future__ import annotations

from ..ir import Graph, Node
from ..ops import find_op


def fixed_rows(graph: Graph) -> Graph:
    """The graph, or a copy whose last suppressions pad what they found."""
    if not any(_ends(n) for n in graph.nodes):
        return graph
    out = graph.copy()
    for node in filter(_ends, out.nodes):
        node.attrs["padded"] = 1
    return out


def _ends(node: Node) -> bool:
    """Can pad its rows, and no other node reads them."""
    op = find_op(node.op)
    return op is not None and "padded" in op.attrs and not any(v.readers for v in node.outputs)
