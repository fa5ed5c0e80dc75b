"""Everything about one layer."""

from .inspector import Inspector

__all__ = ["Inspector"]
