"""Profiles of the past, and what changed between two of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from ._history import History

__all__ = ["History"]

__getattr__ = lazily(__name__, {"History": "_history"})
