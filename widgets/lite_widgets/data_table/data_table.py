"""DataTable: a table of plain cells with bars, chips, ticks and buttons."""

from __future__ import annotations

from typing import Any

import traitlets as t
from lite_messages import tr

from .._base import LiteWidget, PlainList
from .._svg import table


class DataTable(LiteWidget):
    """Support per target, the journal of passes, anything that is rows.

    columns  [{"id", "head", "kind"}]; kind is "text", "number", "code", "wrap", "bar" (0…1 or
             [0…1, text]), "chip" ([text, kind]), "check" (true: supported; or a chip), "action"
             ([id, label, payload]; an empty id is plain text). A column may have a "backend":
             its dot stands before the head.
    rows     [{column id: value}]; a row with "name" selects that layer when it is clicked.
    title, note   of the card.

    Actions: the ids in cells of kind "action".
    """

    title = t.Unicode("")
    note = t.Unicode("")
    columns = PlainList(need=("id", "head"))
    rows = PlainList()
    height = t.Int(0)

    def static_html(self) -> str:
        """Return the first 20 rows."""
        ids = [column["id"] for column in self.columns]
        cells = [[_text(row.get(i)) for i in ids] for row in self.rows[:20]]
        more = len(self.rows) - len(cells)
        head = [column["head"] for column in self.columns]
        return (
            table(head, cells, tr("{more} more rows", more=more) if more > 0 else "")
            + self._static_caption()
        )


def _text(value: Any) -> Any:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        texts = [part for part in value if isinstance(part, str)]
        return texts[1] if len(value) == 3 and len(texts) > 1 else (texts or [""])[0]
    return value
