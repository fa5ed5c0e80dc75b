"""DoctorCards: what can run here, and how to fix what cannot."""

from __future__ import annotations

import traitlets as t
from lite_messages import tr

from .._base import LiteWidget, PlainList
from .._svg import table


class DoctorCards(LiteWidget):
    """One card per target: facts, a state chip, at most one fix.

    cards   [data.TargetCard]
    chosen  ids of the targets to use; set by the ticks when `choose` is true.

    Actions, each with the id of its "card": "again", and those of the card itself.
    """

    cards = PlainList(need=("id", "title", "state", "facts"))
    choose = t.Bool(False)
    chosen = t.List(t.Unicode())

    def static_html(self) -> str:
        """Return one table row per card."""
        rows = [
            [c["title"], c.get("chip", c["state"]), "; ".join(f"{k}: {v}" for k, v in c["facts"]),
             (c.get("notice") or {}).get("fix", "")]
            for c in self.cards
        ]  # fmt: skip
        return table(["Target", tr("State"), tr("Facts"), tr("Fix")], rows) + self._static_caption()
