"""Plan → executable: native CPU code, OpenCL, NumPy."""

from __future__ import annotations

import importlib

from ._base import Backend, Executable, Repeats, Samples, StepTime, Usability

_MODULES = {"cpu": "CpuBackend", "opencl": "OpenCLBackend", "reference": "ReferenceBackend"}
_made: dict[str, Backend] = {}


def get_backend(name: str) -> Backend:
    """The backend called "cpu", "opencl" or "reference"; made on first use, so that importing the
    engine loads neither the native library nor an OpenCL driver."""
    if name not in _made:
        module = importlib.import_module(f"{__name__}.{name}")
        _made[name] = getattr(module, _MODULES[name])()
    return _made[name]


__all__ = [
    "Backend",
    "Executable",
    "Repeats",
    "Samples",
    "StepTime",
    "Usability",
    "get_backend",
]
