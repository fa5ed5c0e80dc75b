"""Graph → Graph, journaled: `optimize_graph`, the list of passes, and what a pass is made of."""

from ._attributes import A
from ._core import C, Match, P, Pass, graph_pass, rule, skip
from .custom import with_custom
from .pipeline import PIPELINE, Optimized, optimize_graph, optimized

__all__ = [
    "PIPELINE",
    "A",
    "C",
    "Match",
    "Optimized",
    "P",
    "Pass",
    "graph_pass",
    "optimize_graph",
    "optimized",
    "rule",
    "skip",
    "with_custom",
]
