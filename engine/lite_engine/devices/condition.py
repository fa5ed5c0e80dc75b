"""The condition of a device around a measurement: clock, governor, heat, memory.

Every device answers the same question, "the first lines of these files", so one list serves this
machine, ssh and adb. What cannot be read is left out.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from typing import Any

from lite_messages import tr

from .. import system

_CPU = "/sys/devices/system/cpu/cpu0/cpufreq"
#: Key → file; the first line is the value.
FILES = {
    "frequency_khz": f"{_CPU}/scaling_cur_freq",
    "max_frequency_khz": f"{_CPU}/cpuinfo_max_freq",
    "governor": f"{_CPU}/scaling_governor",
    "temperature_millicelsius": "/sys/class/thermal/thermal_zone0/temp",
    "memory_total": "/proc/meminfo",
    "model": "/proc/device-tree/model",
}
HOT_MILLICELSIUS = 80_000
SLOW_SHARE = 0.9
COOLING_S = 60.0
COOLING_STEP_S = 2.0


def read_here() -> dict[str, Any]:
    """The condition of this machine."""
    lines = {}
    for key, path in FILES.items():
        if (line := system.first_line(path)) is not None:
            lines[key] = line
    return parse(lines)


def shell_command() -> list[str]:
    """A command whose output `parse_output` understands: one line per file of FILES."""
    script = 'for f do head -n 1 "$f" 2>/dev/null | tr -d "\\000\\n"; echo; done'
    return ["sh", "-c", script, "sh", *FILES.values()]


def parse_output(text: str) -> dict[str, Any]:
    return parse(dict(zip(FILES, text.splitlines())))


def parse(lines: Mapping[str, str]) -> dict[str, Any]:
    """First lines of files → numbers and texts; empty ones are left out."""
    out: dict[str, Any] = {}
    for key, line in lines.items():
        text = line.replace("\0", "").strip()[:200]
        if key == "memory_total":
            words = text.split()
            if len(words) > 1 and re.fullmatch("[0-9]+", words[1]):
                out["memory_total_bytes"] = int(words[1]) * 1024
        elif text:
            out[key] = int(text) if re.fullmatch(r"-?[0-9]+", text) else text
    return out


def cooled(read: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """A reading to begin a measurement with: a hot device is waited for, a minute at most."""
    end = time.monotonic() + COOLING_S
    now = read()
    while _is_hot(now) and time.monotonic() < end:
        time.sleep(COOLING_STEP_S)
        now = read()
    return now


def _is_hot(told: Mapping[str, Any]) -> bool:
    heat = told.get("temperature_millicelsius")
    return isinstance(heat, int) and heat >= HOT_MILLICELSIUS


def warnings(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Why the times between two readings may be unreliable."""
    out = []
    heat = after.get("temperature_millicelsius")
    if _is_hot(after) and heat:
        out.append(
            tr(
                "throttling likely: {heat:.0f} °C; let the device cool down, then measure again",
                heat=heat / 1000,
            )
        )
    now, top = after.get("frequency_khz"), after.get("max_frequency_khz")
    was = before.get("frequency_khz")
    if isinstance(now, int) and isinstance(top, int) and now < SLOW_SHARE * top:
        fell = isinstance(was, int) and now < SLOW_SHARE * was
        why = (
            tr("it dropped during the run: throttling")
            if fell
            else tr("governor {name}", name=after.get("governor"))
        )
        out.append(
            tr(
                "the clock is at {now:.2f} of {top:.2f} GHz ({why})",
                now=now / 1000000.0,
                top=top / 1000000.0,
                why=why,
            )
        )
    return out
