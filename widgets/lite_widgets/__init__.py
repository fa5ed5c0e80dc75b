"""Widgets that draw plain data: profiles, comparisons and graphs of small inference engines."""

from .copies_table import CopiesTable
from .error_strip import DifferencePane, ErrorStrip, difference_detail
from .graph_view import GraphView
from .latency_chart import LatencyChart
from .layer_table import LayerTable
from .memory_map import MemoryMap
from .overview_strip import OverviewStrip
from .roofline import Roofline
from .timing_line import TimingLine
from .transition_matrix import TransitionMatrix
from .type_summary import TypeSummary
from .waterfall import Waterfall

__all__ = [
    "CopiesTable",
    "DifferencePane",
    "ErrorStrip",
    "GraphView",
    "LatencyChart",
    "LayerTable",
    "MemoryMap",
    "OverviewStrip",
    "Roofline",
    "TimingLine",
    "TransitionMatrix",
    "TypeSummary",
    "Waterfall",
    "difference_detail",
]
