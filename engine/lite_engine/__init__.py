"""Lite Engine: model file → numbers, on ARM, x86 and OpenCL.

from lite_engine import load, optimize, Predictor
graph = load("inference.pdmodel")
model = optimize(graph, targets=["arm", "opencl"]); model.save("m.lite")
Predictor("m.lite").run({"x": array})
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._version import __version__
from .errors import LiteError

if TYPE_CHECKING:
    from .importers import load
    from .model_file import Model, optimize
    from .runtime import Predictor

# Loaded on first use: `import lite_engine` stays fast, and so does `lite --help`.
_LAZY = {
    "Model": "model_file",
    "Predictor": "runtime",
    "load": "importers",
    "optimize": "model_file",
}

__all__ = ["LiteError", "Model", "Predictor", "__version__", "load", "optimize"]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
