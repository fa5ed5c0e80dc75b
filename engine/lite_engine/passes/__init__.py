"""Graph → Graph, journaled: `optimize_graph` and the list of passes."""

from .pipeline import PIPELINE, optimize_graph

__all__ = ["PIPELINE", "optimize_graph"]
