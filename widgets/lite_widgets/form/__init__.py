"""A few lines of text to fill in."""

from .form import Form

__all__ = ["Form"]
