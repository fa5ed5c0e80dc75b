"""The Python of every click."""

from .code_drawer import CodeDrawer

__all__ = ["CodeDrawer"]
