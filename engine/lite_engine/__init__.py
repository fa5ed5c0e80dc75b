"""Lite Engine: model file → numbers, on ARM, x86 and OpenCL.

from lite_engine import load, optimize, Predictor
graph = load("inference.pdmodel")
model = optimize(graph, targets=["arm", "opencl"]); model.save("m.lite")
Predictor("m.lite").run({"x": array})
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._lazy import lazily
from ._version import __version__
from .errors import LiteError

if TYPE_CHECKING:
    from .importers import load
    from .model_file import Model, optimize
    from .runtime import Predictor

__all__ = ["LiteError", "Model", "Predictor", "__version__", "load", "optimize"]

# `import lite_engine` stays fast, and so does `lite --help`.
__getattr__ = lazily(
    __name__,
    {
        "Model": "model_file",
        "Predictor": "runtime",
        "load": "importers",
        "optimize": "model_file",
    },
)
