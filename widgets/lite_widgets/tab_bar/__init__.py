"""Tabs of a card."""

from .tab_bar import TabBar

__all__ = ["TabBar"]
