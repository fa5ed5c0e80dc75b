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


def clip(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
