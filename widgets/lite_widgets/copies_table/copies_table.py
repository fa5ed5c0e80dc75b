"""CopiesTable: every transfer between backends, layouts or precisions, with reason and fix."""

from __future__ import annotations

from lite_messages import tr

from .._base import LiteWidget, Plain
from .._svg import table
from ..formats import bytes_text, number


class CopiesTable(LiteWidget):
    """The copies of a profile: size, time, why, and what to do about it.

    profile  data.Profile; rows of type "Copy" are shown, with their data.CopyInfo.

    Action {"id": "apply", "code"}: the fix of a row was clicked.
    """

    profile = Plain(rows="layers", need=("layers",))

    def static_html(self) -> str:
        """Return the table."""
        rows = [r for r in (self.profile or {}).get("layers", []) if r["type"] == "Copy"]
        if not rows:
            return "<p>No copies, casts or fallbacks.</p>"
        cells = []
        for row in rows:
            info = row.get("copy") or {}
            way = f"{info.get('source', '–')} → {info.get('target', '–')}"
            size, ms = bytes_text(info.get("bytes")), number(row.get("median_ms"))
            cells.append([row["name"], way, size, ms, info.get("why", row.get("why", ""))])
        head = [tr("Where"), "From → to", tr("Size"), "ms", tr("Why")]
        return table(head, cells) + self._static_caption()
