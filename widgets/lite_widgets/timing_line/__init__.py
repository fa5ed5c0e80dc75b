"""The honest headline of a profile."""

from .timing_line import TimingLine

__all__ = ["TimingLine"]
