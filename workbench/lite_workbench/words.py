"""Counts, sizes and times as a person reads them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lite_messages import tr

#: What a pass did, or did not do, by an entry's `action` in the journal.
REWRITING = {"rewrote": tr("rewrote"), "refused": tr("refused")}
#: Parts of the memory, for people.
MEMORY = {"weights": tr("weights"), "arena": tr("arena"), "packed": tr("packed"),
           "scratch": tr("scratch"), "device": tr("device")}  # fmt: skip


def listed(names: Sequence[str], most: int = 12, between: str = " + ") -> str:
    """a + b + c and 4464 more"""
    rest = len(names) - most
    return between.join(names[:most]) + (tr(" and {count} more", count=rest) if rest > 0 else "")


def common_prefix(names: Sequence[str]) -> str:
    """What all names begin with, up to and with a slash or dot; "" for one name. Widgets cut the
    same (graph_view/names.js)."""
    if len(names) < 2:
        return ""
    low, high = min(names), max(names)
    at = next((i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), len(low))
    common = low[:at]
    return common[: max(common.rfind("/"), common.rfind(".")) + 1]


def listed_inside(names: Sequence[str]) -> str:
    """What the names begin with is said once: block/a + block/b → block: a + b"""
    common = common_prefix(names)
    inside = listed([name[len(common) :] for name in names])
    return f"{common[:-1]}: {inside}" if common else inside


def number(value: float, unit: str = "") -> str:
    """1234567 → 1.23 M; with a unit 1.23 MB, 12 B."""
    value = float(f"{value:.3g}")  # first: 999.7 is 1 k
    for letter, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= size:
            return f"{value / size:.3g} {letter}{unit}"
    return f"{value:.3g} {unit}".rstrip()


def milliseconds(value: float) -> str:
    """Three significant digits."""
    if not value or not math.isfinite(value):
        return "–"
    digits = max(0, 2 - math.floor(math.log10(value)))
    return f"{value:.{digits}f} ms"
