"""A plain table with bars and chips."""

from .data_table import DataTable

__all__ = ["DataTable"]
