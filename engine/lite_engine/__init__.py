"""Lite Engine: model file → numbers, on ARM, x86 and OpenCL.

from lite_engine import load, optimize, Predictor
graph = load("inference.pdmodel")
model = optimize(graph, targets=["arm", "opencl"]); model.save("m.lite")
Predictor("m.lite").run({"x": array})
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._lazy import lazily
from ._version import __version__
from .errors import LiteError
from .runtime import kernel_check

if TYPE_CHECKING:
    from .backends.cpu.custom import c_kernel
    from .backends.opencl.custom import opencl_kernel
    from .exporters.onnx import write_onnx
    from .importers import load
    from .model_file import Model, optimize
    from .ops import custom_op
    from .runtime import Predictor

__all__ = [
    "LiteError",
    "Model",
    "Predictor",
    "__version__",
    "c_kernel",
    "custom_op",
    "load",
    "opencl_kernel",
    "optimize",
    "write_onnx",
]

# `import lite_engine` stays fast, and so does `lite --help`.
__getattr__ = lazily(
    __name__,
    {
        "Model": "model_file",
        "Predictor": "runtime",
        "c_kernel": "backends.cpu.custom",
        "custom_op": "ops",
        "load": "importers",
        "opencl_kernel": "backends.opencl.custom",
        "optimize": "model_file",
        "write_onnx": "exporters.onnx",
    },
)


def _check_kernels(predictor: Any, feeds: Any) -> None:
    from .compare.check import check_kernels

    check_kernels(predictor, feeds)


kernel_check.register(_check_kernels)
