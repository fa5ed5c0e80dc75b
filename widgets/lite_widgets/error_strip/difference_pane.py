"""DifferencePane: how one layer's two outputs differ, and where."""

from __future__ import annotations

from typing import Any

import numpy as np
import traitlets as t
from lite_messages import tr

from .._base import Float32, LiteWidget, Plain
from .._svg import table
from ..formats import error_text
from .detail import difference_detail


class DifferencePane(LiteWidget):
    """Figures, worst index, channel map with a magnifier, channel strip and histogram.

    layer      one row of data.Comparison, plus "kernel", "sources", "output_shapes" if known.
    a, b       names of the two sides.
    tolerance  follows linked strips.
    kind       "isolated" or "accumulated": set by clicks; Python answers with a new `detail`.
    detail     what difference_detail returns, without its map; None while it is fetched.
    map        |b − a| of one channel, float32 (H,W) in C order; map_shape [H, W].
    channel    set by clicks on the channel strip; Python answers with a new `map`.

    `show(a, b)` fills detail, map and channel from two arrays.
    """

    layer = Plain(need=("name",))
    a = t.Unicode("x86")
    b = t.Unicode("opencl")
    tolerance = t.Float(1e-2)
    kind = t.Enum(["isolated", "accumulated"], "isolated")
    detail = Plain(need=("histogram", "channels"))
    map = Float32()
    map_shape = t.List(t.Int())
    channel = t.Int(0)
    height = t.Int(0)

    def show(self, a: np.ndarray, b: np.ndarray, **options: Any) -> None:
        """Measure two arrays of the same shape and show them; options of difference_detail."""
        detail = difference_detail(a, b, tolerance=self.tolerance, **options)
        picture = detail.pop("map")
        with self.hold_sync():
            self.map_shape = detail["map_shape"]
            self.map = picture
            self.channel = detail["channel"]
            self.detail = detail

    def static_html(self) -> str:
        """Return the two rows of figures."""
        if not self.layer:
            return ""
        names = ("rel_l2", "max_abs", "mean_abs", "sqnr_db")
        isolated = self.layer.get("isolated") or {}
        pairs = ((tr("isolated"), isolated), (tr("accumulated"), self.layer))
        rows = [[kind, *(error_text(figures.get(n)) for n in names)] for kind, figures in pairs]
        head = (self.layer["name"], *names)
        return table(head, rows) + self._static_caption()
