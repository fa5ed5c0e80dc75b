"""Every layer once, in one narrow strip."""

from .overview_strip import OverviewStrip

__all__ = ["OverviewStrip"]
