"""What a measurement was made on."""

from __future__ import annotations

import platform
from typing import Any

from .. import system
from .._version import __version__
from ..devices import condition


def environment() -> dict[str, Any]:
    """CPU, cores, versions, and `readings`."""
    info: dict[str, Any] = {
        "engine": __version__,
        "machine": platform.machine(),
        "cpu": cpu_name(),
        "cores": system.processors(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }
    return {**info, **readings()}


def readings() -> dict[str, Any]:
    """What may change while measuring: clock, governor, temperature, where they are readable."""
    found = condition.read_here()
    khz = _clock_khz()
    return {"frequency_khz": khz, **found} if khz else found


def _clock_khz() -> int | None:
    """The fastest core's clock as the system lists it; Linux on x86 alone does."""
    clocks = [float(value) for name, value in system.cpu_fields() if name == "cpu MHz"]
    return int(max(clocks) * 1e3) if clocks else None


def cpu_name() -> str:
    """Name of the processor as the system gives it."""
    for name, value in system.cpu_fields():
        if name in ("model name", "Hardware", "Model"):
            return value
    return platform.processor() or platform.machine()
