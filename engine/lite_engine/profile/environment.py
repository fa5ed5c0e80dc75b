"""What a measurement was made on."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

from .._version import __version__
from ..devices import condition


def environment() -> dict[str, Any]:
    """CPU, cores, versions, and `readings`."""
    info: dict[str, Any] = {
        "engine": __version__,
        "machine": platform.machine(),
        "cpu": cpu_name(),
        "cores": len(os.sched_getaffinity(0)),
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
    """The fastest core's clock as /proc/cpuinfo has it; x86 alone has it there."""
    lines = (_read(Path("/proc/cpuinfo")) or "").splitlines()
    clocks = [float(x.partition(":")[2]) for x in lines if x.startswith("cpu MHz")]
    return int(max(clocks) * 1e3) if clocks else None


def _read(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None


def cpu_name() -> str:
    """Name of the processor as the system gives it."""
    text = _read(Path("/proc/cpuinfo")) or ""
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "Hardware", "Model"):
            return value.strip()
    return platform.processor() or platform.machine()


def peak_rss_bytes() -> int:
    """Largest resident size of this process so far.

    Linux's VmHWM belongs to the program; ru_maxrss starts at what the parent held when it started
    this process, and is used where there is no /proc.
    """
    import resource

    for line in (_read(Path("/proc/self/status")) or "").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
