"""What clipping cuts off."""

from .range_plot import RangePlot

__all__ = ["RangePlot"]
