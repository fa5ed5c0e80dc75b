"""Plan → executable: native CPU code, OpenCL, NumPy."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from .._lazy import lazily
from ._usability import Usability

if TYPE_CHECKING:
    from ._base import (
        Backend,
        Executable,
        LayersRefused,
        Measured,
        Offload,
        Probed,
        Recovering,
        Repeats,
        Samples,
        StepTime,
        Tried,
        Tunable,
    )

_MODULES = {"cpu": "CpuBackend", "opencl": "OpenCLBackend", "reference": "ReferenceBackend"}
_made: dict[str, Backend] = {}


def get_backend(name: str) -> Backend:
    """The backend called "cpu", "opencl" or "reference"; made on first use, so that importing the
    engine loads neither the native library nor an OpenCL driver."""
    if name not in _made:
        module = importlib.import_module(f"{__name__}.{name}")
        made: Backend = getattr(module, _MODULES[name])()
        _made[name] = made
    return _made[name]


_CONTRACT = (
    "Backend", "Executable", "LayersRefused", "Measured", "Offload", "Probed", "Recovering",
    "Repeats", "Samples", "StepTime", "Tried", "Tunable",
)  # fmt: skip
__getattr__ = lazily(__name__, dict.fromkeys(_CONTRACT, "_base"))

__all__ = [
    "Backend",
    "Executable",
    "LayersRefused",
    "Measured",
    "Offload",
    "Probed",
    "Recovering",
    "Repeats",
    "Samples",
    "StepTime",
    "Tried",
    "Tunable",
    "Usability",
    "get_backend",
]
