"""The model as a graph of blocks."""

from .graph_view import GraphView

__all__ = ["GraphView"]
