"""Plan → executable: native CPU code, OpenCL, NumPy."""

from __future__ import annotations

import importlib
import threading
from typing import TYPE_CHECKING

from .._lazy import lazily
from ..extensions import BACKENDS, register, unregister
from ._usability import Usability

if TYPE_CHECKING:
    from ._base import (
        SHARED,
        Backend,
        Executable,
        Joint,
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
    from .plugins import BackendPlugin, PluginBackend

_MODULES = {"cpu": "CpuBackend", "opencl": "OpenCLBackend", "reference": "ReferenceBackend"}
#: Held while one is made or forgotten: two threads that ask at the same time get the same one.
_making = threading.RLock()
_made: dict[str, Backend] = {}
_plugins: dict[str, PluginBackend] = {}


def get_backend(name: str) -> Backend:
    """The backend called "cpu", "opencl" or "reference", or one of another package (plugins/); made
    on first use, so that importing the engine loads neither the native library nor a driver."""
    with _making:
        if name not in _made:
            if name in _MODULES:
                module = importlib.import_module(f"{__name__}.{name}")
                made: Backend = getattr(module, _MODULES[name])()
            else:
                made = get_plugin(name)
            _made[name] = made
        return _made[name]


def get_plugin(name: str) -> PluginBackend:
    """The backend of another package; one that is not installed says so when it is used."""
    from .plugins import PluginBackend

    with _making:
        if name not in _plugins:
            _plugins[name] = PluginBackend(name)
        return _plugins[name]


def register_backend(plugin: BackendPlugin) -> None:
    """Adds a backend for this process, as an installed package does by its entry point."""
    with _making:
        register(BACKENDS, plugin.name, plugin)
        _forget(plugin.name)


def unregister_backend(name: str) -> None:
    with _making:
        unregister(BACKENDS, name)
        _forget(name)


def _forget(name: str) -> None:
    _made.pop(name, None)
    _plugins.pop(name, None)


_CONTRACT = (
    "SHARED", "Backend", "Compiling", "Executable", "Joint", "LayersRefused", "Measured", "Offload",
    "Probed", "Recovering", "Repeats", "Samples", "StepTime", "Threaded", "Tried", "Tunable",
)  # fmt: skip
__getattr__ = lazily(__name__, dict.fromkeys(_CONTRACT, "_base"))

__all__ = [
    "SHARED",
    "Backend",
    "Compiling",
    "Executable",
    "Joint",
    "LayersRefused",
    "Measured",
    "Offload",
    "Probed",
    "Recovering",
    "Repeats",
    "Samples",
    "StepTime",
    "Threaded",
    "Tried",
    "Tunable",
    "Usability",
    "get_backend",
    "get_plugin",
    "register_backend",
    "unregister_backend",
]
