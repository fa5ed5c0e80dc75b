"""What a model answered."""

from .result_card import ResultCard

__all__ = ["ResultCard"]
