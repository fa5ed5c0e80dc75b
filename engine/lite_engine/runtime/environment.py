"""What a measurement was made on."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

from .._version import __version__


def environment() -> dict[str, Any]:
    """CPU, cores, frequency, governor, temperature where readable, versions."""
    info: dict[str, Any] = {
        "engine": __version__,
        "machine": platform.machine(),
        "cpu": cpu_name(),
        "cores": len(os.sched_getaffinity(0)),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }
    for key, path in _READABLE.items():
        text = _read(path)
        if text is not None:
            info[key] = _value(text)
    return info


def readings() -> dict[str, Any]:
    """What changes while measuring: frequency and temperature, where they are readable."""
    found = {k: _read(_READABLE[k]) for k in ("frequency_khz", "temperature_millicelsius")}
    return {key: _value(text) for key, text in found.items() if text is not None}


def _value(text: str) -> Any:
    return int(text) if text.lstrip("-").isdigit() else text


_READABLE = {
    "frequency_khz": Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq"),
    "max_frequency_khz": Path("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq"),
    "governor": Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
    "temperature_millicelsius": Path("/sys/class/thermal/thermal_zone0/temp"),
}


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
