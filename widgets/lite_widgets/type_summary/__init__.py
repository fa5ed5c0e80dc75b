"""Time per layer type."""

from .type_summary import TypeSummary

__all__ = ["TypeSummary"]
