"""Plan → executable: native CPU code, OpenCL, NumPy."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from .._lazy import lazily
from ._usability import Usability

if TYPE_CHECKING:
    from ._base import Backend, Executable, Repeats, Samples, StepTime

_MODULES = {"cpu": "CpuBackend", "opencl": "OpenCLBackend", "reference": "ReferenceBackend"}
_made: dict[str, Backend] = {}


def get_backend(name: str) -> Backend:
    """The backend called "cpu", "opencl" or "reference"; made on first use, so that importing the
    engine loads neither the native library nor an OpenCL driver."""
    if name not in _made:
        module = importlib.import_module(f"{__name__}.{name}")
        _made[name] = getattr(module, _MODULES[name])()
    return _made[name]


__getattr__ = lazily(
    __name__, dict.fromkeys(("Backend", "Executable", "Repeats", "Samples", "StepTime"), "_base")
)

__all__ = [
    "Backend",
    "Executable",
    "Repeats",
    "Samples",
    "StepTime",
    "Usability",
    "get_backend",
]
