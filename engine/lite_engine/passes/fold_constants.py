"""Nodes that read constants only become constants.

DequantizeLinear of a constant stays: it says how the weight is stored.
"""

from __future__ import annotations

from .. import ops
from ..ir import Graph, Journal
from ._core import graph_pass

KEEP = ("DequantizeLinear", "DynamicQuantizeLinear")


@graph_pass("fold-constants")
def fold_constants(graph: Graph, journal: Journal) -> int:
    before = {n.name for n in graph.nodes}
    count = ops.fold_constants(graph, keep=KEEP)
    if count:
        left = {n.name for n in graph.nodes}
        journal.rewrote("fold-constants", tuple(sorted(before - left)))
    return count
