"""Plain-text tables and numbers for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def table(
    headers: Sequence[str], rows: Sequence[Sequence[Any]], *, right: Sequence[int] = ()
) -> str:
    """Columns padded to their widest cell; `right` lists right-aligned column numbers."""
    cells = [[str(c) for c in row] for row in rows]
    widths = [max([len(h), *(len(row[i]) for row in cells)]) for i, h in enumerate(headers)]

    def line(row: Sequence[str]) -> str:
        parts = [
            c.rjust(w) if i in right else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths))
        ]
        return "  ".join(parts).rstrip()

    rule = "  ".join("─" * w for w in widths)
    return "\n".join([line(list(headers)), rule, *(line(r) for r in cells)])


def count_text(number: float, what: str = "") -> str:
    """1234567 → 1.23 M; with `what`: 1.23 MMACs, 12 MACs"""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(number) >= size:
            return f"{number / size:.3g} {unit}{what}"
    return f"{number:g} {what}".rstrip()


def bytes_text(number: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if abs(number) >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number:.0f} B"


def clip(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
