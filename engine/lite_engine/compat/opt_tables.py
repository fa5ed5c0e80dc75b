"""Which operators Paddle-Lite's targets support, as the tables that `opt` prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from ..importers.paddle.registry import known_types
from ..ir import Graph
from ..model_file.naive_buffer import kernels, nb_program


def supported_table(
    targets: Sequence[str], form: Callable[[list[list[str]]], str] | None = None
) -> str:
    """Paddle operators that are read, and which targets of `.nb` files have a kernel for them."""
    rows = [["operator", "lite", *targets]]
    for name in known_types():
        cells = ["Y" if kernels.kernel_for(name, t) else "-" for t in targets]
        rows.append([name, "Y", *cells])
    return (form or _table)(rows)


def model_table(graph: Graph, targets: Sequence[str]) -> str:
    """The operators of a model as Paddle-Lite would get them."""
    counts = Counter(_types(graph))
    rows = [["operator", "count", *targets]]
    for name in sorted(counts):
        cells = ["Y" if kernels.kernel_for(name, t) else "-" for t in targets]
        rows.append([name, str(counts[name]), *cells])
    return _table(rows)


def _types(graph: Graph) -> list[str]:
    """Types of the operators that do arithmetic, in order."""
    ops = nb_program(graph).blocks[0].ops
    return [op.type for op in ops if op.type not in ("feed", "fetch")]


def _markdown(rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def _table(rows: list[list[str]]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows
    )
