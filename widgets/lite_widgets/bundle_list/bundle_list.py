"""BundleList: what goes to the device; ticks change the total."""

from __future__ import annotations

from typing import Any

import traitlets as t
from lite_messages import tr

from .._base import LiteWidget, PlainList
from .._svg import table
from ..formats import bytes_text


class BundleList(LiteWidget):
    """Files of a bundle with their sizes.

    items   [{"id", "file", "what", "bytes", "fixed": always in}]
    title, note, button   of the header; the button says the total after its word.
    chosen  ids of the ticked ones (fixed ones need not be listed); set by ticks.

    Action {"id": "write"}: the button with the total.
    """

    items = PlainList(need=("id", "file", "bytes"))
    chosen = t.List(t.Unicode())
    title = t.Unicode(tr("Bundle"))
    note = t.Unicode("")
    button = t.Unicode(tr("Write bundle"))

    def total_bytes(self) -> int:
        """Return the size of everything that goes in."""
        return sum(item["bytes"] for item in self._inside())

    def _inside(self) -> list[dict[str, Any]]:
        return [i for i in self.items if i.get("fixed") or i["id"] in self.chosen]

    def static_html(self) -> str:
        """Return the files that go in."""
        rows = [[i["file"], i.get("what", ""), bytes_text(i["bytes"])] for i in self._inside()]
        return table(
            [tr("File"), tr("Contents"), tr("Size")],
            rows,
            tr("total {size}", size=bytes_text(self.total_bytes())),
        )
