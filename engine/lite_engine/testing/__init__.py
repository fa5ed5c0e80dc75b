"""Kernels against their operators' NumPy references, from the registry alone.

    python -m lite_engine.testing Relu6        every kernel of an operator, on all backends here

`lite_engine.cases` makes calls from an operator's registration (`ops/_samples.py`), `run` executes
them on a backend and compares. A new kernel is tested by being registered.
"""

from ..cases import Case, cases, kernels_of
from .run import Place, Result, places, run

__all__ = ["Case", "Place", "Result", "cases", "kernels_of", "places", "run"]
