"""What is wrong, where, and the fix."""

from .notice import Notice

__all__ = ["Notice"]
