"""Graph → Graph, journaled: `optimize_graph` and the list of passes."""

from .pipeline import BEFORE_QUANTIZING, PIPELINE, optimize_graph

__all__ = ["BEFORE_QUANTIZING", "PIPELINE", "optimize_graph"]
