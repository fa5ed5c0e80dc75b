"""OverviewStrip: every layer once; over 300 layers it bins by maximum."""

from __future__ import annotations

import traitlets as t
from lite_messages import tr

from .._base import LiteWidget, Plain
from .._rows import row_value
from .._svg import Picture, ramp


class OverviewStrip(LiteWidget):
    """The whole model at a glance, beside another view.

    profile     data.Profile: colours are those of `colour_by`; or
    comparison  data.Comparison: colours are errors against `tolerance`.
    hidden_types  faded layer types (follows TypeSummary).
    """

    profile = Plain(rows="layers", need=("layers",))
    comparison = Plain(rows="layers", need=("layers", "baseline", "candidate"))
    tolerance = t.Float(1e-2)
    colour_by = t.Enum(["time", "type", "backend", "precision", "gflops", "change"], "time")
    hidden_types = t.List(t.Unicode())
    height = t.Int(400)

    def static_svg(self) -> str | None:
        """Return the strip lying on its side."""
        rows = (self.profile or self.comparison or {}).get("layers")
        if not rows:
            return None
        emulated = bool(self.profile and self.profile.get("emulated"))
        weights = [
            row_value(row, emulated) if self.profile else float(row.get("rel_l2") or 0.0)
            for row in rows
        ]
        most, step = max([*weights, 1e-12]), 744 / len(rows)
        picture = Picture(760, 32, tr("Every layer once"))
        scale = "time" if self.profile else "over"
        for i, weight in enumerate(weights):
            picture.rect(
                8 + i * step, 8, max(step - 0.6, 0.5), 16, ramp(scale, (weight / most) ** 0.5)
            )
        return str(picture)
