"""Backends of other packages beside the engine's own: which of them a plan may use."""

from __future__ import annotations

from collections.abc import Mapping

from .. import settings
from ..backends import get_backend, get_plugin
from ..backends.plugins import PluginBackend
from ..model_file.precision import ON_CPU
from .choice import is_plugin


def own_backend(backend: str) -> str:
    """The engine's backend that runs what no accelerator takes."""
    if not is_plugin(backend):
        return ON_CPU.get(backend, backend)
    return "cpu" if get_backend("cpu").usability().usable else "reference"


def accelerators(backend: str, overrides: Mapping[str, str]) -> list[PluginBackend]:
    """The one that runs the model, then those that single layers are sent to and that work here."""
    names = [backend] if is_plugin(backend) else []
    names += [word for word in overrides.values() if word in settings.backends()]
    found = [get_plugin(name) for name in dict.fromkeys(names) if is_plugin(name)]
    return [plugin for plugin in found if plugin.usability().usable]
