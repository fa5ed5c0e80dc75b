"""Graph → Graph, journaled: `optimize_graph` and the list of passes."""

from .pipeline import PIPELINE, SPECIALISED, optimize_graph

__all__ = ["PIPELINE", "SPECIALISED", "optimize_graph"]
