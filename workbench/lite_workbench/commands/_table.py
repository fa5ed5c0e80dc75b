"""Plain-text tables and numbers for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lite_engine.terminal import printable
from rich.cells import cell_len, set_cell_size


def table(
    headers: Sequence[str], rows: Sequence[Sequence[Any]], *, right: Sequence[int] = ()
) -> str:
    """Columns padded to their widest cell, as a terminal shows it, where a Chinese character takes
    two places; `right` lists right-aligned column numbers. A line break in a cell is an escape."""
    cells = [[printable(str(c)) for c in row] for row in rows]
    widths = [
        max([cell_len(h), *(cell_len(row[i]) for row in cells)]) for i, h in enumerate(headers)
    ]

    def line(row: Sequence[str]) -> str:
        parts = [
            " " * (w - cell_len(c)) + c if i in right else set_cell_size(c, w)
            for i, (c, w) in enumerate(zip(row, widths))
        ]
        return "  ".join(parts).rstrip()

    rule = "  ".join("─" * w for w in widths)
    return "\n".join([line(list(headers)), rule, *(line(r) for r in cells)])


def clip(text: str, width: int) -> str:
    text = printable(text)
    return text if cell_len(text) <= width else set_cell_size(text, width - 1) + "…"
