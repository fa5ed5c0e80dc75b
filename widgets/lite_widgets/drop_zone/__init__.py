"""A file from the page to Python."""

from .drop_zone import DropZone

__all__ = ["DropZone"]
