"""Sweep: a model × backends × precisions × threads × batch sizes × streams → measured cells, and
those that no other is better than (the Pareto front)."""

from .cells import Cell, Choice
from .result import Sweep
from .run import sweep

__all__ = ["Cell", "Choice", "Sweep", "sweep"]
