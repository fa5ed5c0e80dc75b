"""Why one profile is faster than another."""

from .waterfall import Waterfall

__all__ = ["Waterfall"]
