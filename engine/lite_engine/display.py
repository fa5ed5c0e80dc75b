"""What an answer says of itself: a line in a terminal, HTML with the verdict in a notebook."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from lite_messages import tr

from .terminal import printable

#: Rows of a table in a notebook; a DataFrame has all of them.
MOST_ROWS = 20


class Displayed:
    """A base class for results: a subclass defines `headline`, one sentence, and may define
    `table`; notebooks and terminals display these."""

    @property
    def headline(self) -> str:
        raise NotImplementedError

    def table(self) -> tuple[Sequence[str], Sequence[Sequence[Any]]]:
        """Column heads, and a row of each; text and numbers."""
        return (), ()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {printable(self.headline)}>"

    def _repr_html_(self) -> str:
        return answer_html(self.headline, *self.table())


def answer_html(
    headline: str, heads: Sequence[str] = (), rows: Sequence[Sequence[Any]] = ()
) -> str:
    """The verdict as a paragraph, then at most MOST_ROWS rows; everything is escaped."""
    out = [f"<p><b>{html.escape(headline)}</b></p>"]
    if rows:
        cells = "".join(f"<th style='text-align:left'>{html.escape(head)}</th>" for head in heads)
        body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows[:MOST_ROWS])
        out.append(f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>")
    if len(rows) > MOST_ROWS:
        more = html.escape(tr("and {count} more", count=len(rows) - MOST_ROWS))
        out.append(f"<p>{more}</p>")
    return "".join(out)


def _cell(value: Any) -> str:
    side = "right" if isinstance(value, (int, float)) else "left"
    text = number_text(value) if isinstance(value, float) else str(value)
    return f"<td style='text-align:{side}'>{html.escape(text)}</td>"


def number_text(value: float) -> str:
    """Four digits; large ones without an exponent."""
    return f"{value:.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.4g}"
