"""An Evaluation as HTML for notebooks."""

from __future__ import annotations

import html
from collections.abc import Sequence

from lite_messages import tr

from .results import Change, SampleRow, SideResult

ROWS = 20


def page(
    title: str,
    sides: Sequence[SideResult],
    changes: Sequence[Change],
    rows: Sequence[SampleRow],
    notes: Sequence[str],
    errors: Sequence[str],
) -> str:
    """The notes, the metrics, the changes, and the first samples of `rows`."""
    metrics = [[s.name, s.backend, s.precision, *(m.figure for m in s.metrics)] for s in sides]
    said = [
        *(c.sentence for c in changes),
        *(tr("left out: {e}", e=e) for e in errors[:ROWS]),
    ]
    heads = ["", tr("backend"), tr("precision"), *(m.name for m in sides[0].metrics)]
    sample_heads = [tr("sample"), tr("label"), *(s.name for s in sides)]
    return "".join(
        [
            *(f"<p>{html.escape(tr('note: {note}', note=note))}</p>" for note in notes),
            f"<b>{html.escape(title)}</b>",
            html_table(heads, metrics),
            *(f"<p>{html.escape(line)}</p>" for line in said),
            html_table(sample_heads, [_row(r) for r in rows[:ROWS]]),
        ]
    )


def _row(row: SampleRow) -> list[str]:
    return [row.name, row.label, *(side.figure for side in row.sides.values())]


def html_table(heads: list[str], rows: list[list[str]]) -> str:
    """A table of texts."""

    def line(cells: list[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(c)}</{tag}>" for c in cells) + "</tr>"

    body = "".join(line(row, "td") for row in rows)
    return f"<table><thead>{line(heads, 'th')}</thead><tbody>{body}</tbody></table>"
