"""Widgets that draw plain data: profiles, comparisons and graphs of small inference engines."""

from .error_strip import DifferencePane, ErrorStrip, difference_detail
from .graph_view import GraphView
from .latency_chart import LatencyChart

__all__ = ["DifferencePane", "ErrorStrip", "GraphView", "LatencyChart", "difference_detail"]
