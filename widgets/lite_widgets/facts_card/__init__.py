"""Facts as name and value."""

from .facts_card import FactsCard

__all__ = ["FactsCard"]
