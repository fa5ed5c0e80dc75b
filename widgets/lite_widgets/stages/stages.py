"""Stages: a longer job on a device as a line of states."""

from __future__ import annotations

import traitlets as t

from .._base import LiteWidget, PlainList
from .._svg import table
from ..formats import number


class Stages(LiteWidget):
    """Connect, copy, run, compare, profile, report: state, detail and seconds of each.

    stages    [data.Stage]
    title     "Try on rock5b". cancellable: shows Cancel while something runs.
    """

    stages = PlainList(need=("name", "state"))
    title = t.Unicode("")
    cancellable = t.Bool(True)

    def static_html(self) -> str:
        """Return one table row per stage."""
        rows = [
            [s["name"], s["state"], s.get("detail") or "", number(s.get("seconds"), 1)]
            for s in self.stages
        ]
        return table([self.title or "Stage", "State", "Detail", "s"], rows) + self._static_caption()
