"""Nodes that read constants only become constants.

DequantizeLinear of a constant stays: it says how the weight is stored. Types that become known
belong to nodes that read what was folded, or what these make: the pass is local.
"""

from __future__ import annotations

from .. import ops
from ..ir import Graph, Journal
from ._core import graph_pass

KEEP = ("DequantizeLinear", "DynamicQuantizeLinear")


@graph_pass("fold-constants", local=True)
def fold_constants(graph: Graph, journal: Journal) -> int:
    before = {n.name for n in graph.nodes}
    count = ops.fold_constants(graph, keep=KEEP)
    if count:
        left = {n.name for n in graph.nodes}
        journal.rewrote("fold-constants", tuple(sorted(before - left)))
    return count
