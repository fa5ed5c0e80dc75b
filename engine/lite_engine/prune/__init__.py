"""Float graph + samples → the same with zeros in its weights, or with fewer channels."""

from .layers import Curves
from .patterns import Pattern
from .pruner import Pruned, PruneOptions, Pruner

__all__ = ["Curves", "Pattern", "PruneOptions", "Pruned", "Pruner"]
