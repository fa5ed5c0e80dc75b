"""Sample code in several languages."""

from .source_code import SourceCode

__all__ = ["SourceCode"]
