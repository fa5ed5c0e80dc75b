"""Clocks and heat of this machine, every sensor that anybody may read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..devices import condition

_SYS = Path("/sys")
#: Of a board with more sensors than that only the first ones.
_MOST = 64


def clocks_and_heat(root: Path = _SYS) -> dict[str, Any]:
    """The processor's own readings (`devices/condition.py`), `zones` (thermal zones: type and
    thousandths of a degree) and `clocks` (GPUs and memory under devfreq: Hz). Empty lists where
    nothing can be read."""
    zones = [_read(zone, ("type",), ("temp",)) for zone in _folders(root, "class/thermal", "zone")]
    clocks = [
        {"name": place.name, **_read(place, ("governor",), ("cur_freq", "min_freq", "max_freq"))}
        for place in _folders(root, "class/devfreq", "")
    ]
    return {
        "cpu": condition.read_here(),
        "zones": [zone for zone in zones if "temp" in zone],
        "clocks": [clock for clock in clocks if "cur_freq" in clock],
    }


def _folders(root: Path, place: str, word: str) -> list[Path]:
    try:
        return sorted(p for p in (root / place).iterdir() if word in p.name)[:_MOST]
    except OSError:
        return []


def _read(folder: Path, texts: tuple[str, ...], numbers: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in (*texts, *numbers):
        try:
            line = (folder / name).read_text(errors="replace").strip()[:100]
        except OSError:
            continue
        if name in texts:
            found[name] = line
        elif line.lstrip("-").isdecimal():
            found[name] = int(line)
    return found
