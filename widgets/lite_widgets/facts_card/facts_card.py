"""FactsCard: a card of names and values."""

from __future__ import annotations

import traitlets as t

from .._base import LiteWidget
from .._svg import table


class FactsCard(LiteWidget):
    """Facts about a file, a device, a result.

    title  heading. facts [[name, value]]; values may mark `code` and **bold**.
    big    [[label, number, unit, note]] shown large above the facts.
    """

    title = t.Unicode("")
    facts = t.List(t.List(t.Unicode()))
    big = t.List(t.List(t.Unicode()))

    def static_html(self) -> str:
        """Return the facts as a table."""
        rows = [[b[0], f"{b[1]} {b[2]}"] for b in self.big] + [list(fact) for fact in self.facts]
        return table([self.title, ""], rows) + self._static_caption()
