"""SensitivityList: what is lost when only one layer is quantized."""

from __future__ import annotations

import traitlets as t
from lite_messages import tr

from .._base import LiteWidget, PlainList
from .._svg import ACCENT, INK, SOFT, Picture, tail


class SensitivityList(LiteWidget):
    """One bar per layer, worst first; layers kept in float are in accent.

    layers  [{"name", "cost": what it loses alone}]
    kept    names kept in float.
    most    how many get a bar. note: what a cost is; unit: of the costs ("points", "%").
    """

    layers = PlainList(need=("name", "cost"))
    kept = t.List(t.Unicode())
    most = t.Int(16)
    note = t.Unicode(tr("accuracy lost when only this layer is int8"))
    unit = t.Unicode("points")

    def static_svg(self) -> str | None:
        """Return the bars."""
        shown = sorted(self.layers, key=lambda row: -(row["cost"] or 0))[: self.most]
        if not shown:
            return None
        picture = Picture(560, 22 * len(shown) + 24, tr("Which layers lose accuracy"))
        top = max(shown[0]["cost"], 1e-9)
        for i, row in enumerate(shown):
            y = 8 + 22 * i
            picture.text(150, y + 12, tail(row["name"], 24), anchor="end", fill=INK)
            fill = ACCENT if row["name"] in self.kept else SOFT
            picture.rect(158, y + 4, 340 * (row["cost"] or 0) / top, 8, fill)
            picture.text(550, y + 12, f"{row['cost']:.2f}", anchor="end")
        picture.text(8, picture.height - 6, f"{self.unit}: {self.note}")
        return str(picture)
