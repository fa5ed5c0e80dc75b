"""TabBar: the tabs of a card; the page shows the chosen body at once."""

from __future__ import annotations

import traitlets as t

from .._base import LiteWidget, PlainList


class TabBar(LiteWidget):
    """Names of the tabs, with an optional badge; used by workbench_view.Tabbed.

    tabs     [{"name", "badge": text or ""}]
    current  the open one; set by clicks and arrow keys.
    """

    tabs = PlainList(need=("name",))
    current = t.Unicode("")

    def static_html(self) -> str:
        """Return nothing: a saved notebook shows the bodies."""
        return ""
