"""What copies and casts cost, and how to be rid of them."""

from .copies_table import CopiesTable

__all__ = ["CopiesTable"]
