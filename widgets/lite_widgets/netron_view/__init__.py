"""Netron inside the notebook."""

from .netron_view import NetronView

__all__ = ["NetronView"]
