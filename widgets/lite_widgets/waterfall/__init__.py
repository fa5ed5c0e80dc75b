"""Why one profile is faster than another."""

from .waterfall import Waterfall, align

__all__ = ["Waterfall", "align"]
