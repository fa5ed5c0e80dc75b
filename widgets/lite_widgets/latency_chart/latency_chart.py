"""LatencyChart: one bar per layer."""

from __future__ import annotations

import traitlets as t
from lite_messages import tr

from .._base import LiteWidget, Plain
from .._rows import row_value
from .._svg import BRACKET_ROW, RANK_ROW, SOFT, Picture, bracket_rows, nice, ramp, tail, ticks
from ..formats import number

_LEFT, _TOP, _STATIC = 48, 30, (760, 315)


class LatencyChart(LiteWidget):
    """Where the time goes: a bar per layer and per copy.

    profile       data.Profile; under emulation bars are instructions.
    baseline      data.Profile of another backend, for colour_by="change".
    roof          data.Roof or None: full scale of colour_by="gflops".
    colour_by     "time", "type", "backend", "precision", "gflops", "change".
    sort          "order" (model order) or "time" (slowest first, marks 80 %).
    hidden_types  faded layer types (follows TypeSummary).
    """

    profile = Plain(rows="layers", need=("layers",))
    baseline = Plain(rows="layers", need=("layers",))
    roof = Plain(need=("gflops",))
    colour_by = t.Enum(["time", "type", "backend", "precision", "gflops", "change"], "time")
    sort = t.Enum(["order", "time"], "order")
    hidden_types = t.List(t.Unicode())
    height = t.Int(184)

    def static_svg(self) -> str | None:
        """Return the bars in model order, the five slowest numbered and named below."""
        if not self.profile or not self.profile["layers"]:
            return None
        rows = self.profile["layers"]
        emulated = bool(self.profile.get("emulated"))
        values = [row_value(row, emulated) for row in rows]
        top = nice(max(values) * 1.15)
        width, height = _STATIC
        bottom = height - 92 - BRACKET_ROW * bracket_rows(rows)
        step = (width - _LEFT - 10) / len(rows)
        unit = tr("M instructions") if emulated else "ms"

        def y(value: float) -> float:
            return _TOP + (bottom - _TOP) * (1 - value / top)

        picture = Picture(
            width,
            height,
            tr("Time per layer on {backend}", backend=self.profile.get("backend", "")),
        )
        marks = ticks(0, top)
        picture.grid(marks, y, _LEFT, width - 10, [f"{v:.12g}" for v in marks])
        picture.text(_LEFT - 6, 14, unit, anchor="end")
        picture.legend(width - 190, 6, "time", "0", f"{max(values):.3g} {unit}, √")
        for i, value in enumerate(values):
            x, fill = _LEFT + i * step, ramp("time", (value / max(values)) ** 0.5 if value else 0)
            copy = rows[i]["type"] == "Copy"
            picture.rect(
                x, y(value), max(step - 1, 0.8), bottom - y(value), "#fff" if copy else fill,
                stroke=SOFT if copy else "none",
            )  # fmt: skip
        five = sorted(range(len(rows)), key=values.__getitem__, reverse=True)[:5]
        for rank, i in enumerate(five, 1):
            picture.digit(_LEFT + (i + 0.5) * step, y(values[i]) - 4, rank)
        named = [f"{tail(rows[i]['name'], 80)} {number(values[i])} {unit}" for i in five]
        picture.ranking(named, _LEFT, height - 6 - RANK_ROW * 4)
        picture.line(_LEFT, bottom, width - 10, bottom, SOFT)
        picture.brackets(rows, _LEFT, step, bottom + 4)
        return str(picture)
