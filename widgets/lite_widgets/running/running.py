"""Running: the work under way, how far it is, and what waits for it."""

from __future__ import annotations

import traitlets as t

from .._base import LiteWidget, PlainList


class Running(LiteWidget):
    """A line per job; the first runs, the others wait in their order.

    jobs   [{"id", "title", "state": "running" or "waiting", "done", "total", "left"}]; nothing is
           shown without any.
    shown  what the older result below is of: "x86 at 14:32:05", or nothing.

    Action {"id": "cancel", "job": id}.
    """

    jobs = PlainList(need=("id", "title", "state"))
    shown = t.Unicode("")

    def static_html(self) -> str:
        """Return nothing: no work goes on in a saved notebook."""
        return ""
