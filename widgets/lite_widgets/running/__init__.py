"""What runs, what waits, and of when the result below is."""

from .running import Running

__all__ = ["Running"]
