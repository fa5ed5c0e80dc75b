"""Roofline: rate against arithmetic intensity, under measured roofs."""

from __future__ import annotations

import math
from typing import Any

import traitlets as t
from lite_messages import tr, trn

from .._base import LiteWidget, Plain
from .._svg import BAD, INK, RANK_ROW, SOFT, Picture, ramp, tail
from ..formats import number

_LEFT, _TOP, _SIZE = 48, 36, (600, 446)
#: A layer that reaches more of its roofline says that the roofline is wrong.
_ABOVE = 1.1


def intensity(row: dict[str, Any]) -> float | None:
    """Return FLOP per byte moved, from `bytes` or from the measured GB/s; None if unknown."""
    moved = row.get("bytes") or (row.get("gbytes_per_s") or 0) * 1e6 * (row.get("median_ms") or 0)
    return 2 * row["macs"] / moved if row.get("macs") and moved else None


def roof_part(row: dict[str, Any], roof: dict[str, Any]) -> float:
    """Return the share of its roofline that a layer reaches, 0 where it is not known."""
    top = roof.get("integer_gops") if row.get("dtype") in ("i8", "u8") else roof["gflops"]
    limit = min(top or 0, (intensity(row) or 0) * roof["gbytes_per_s"])
    return float(row.get("roofline_fraction") or (row["gflops"] / limit if limit else 0))


class Roofline(LiteWidget):
    """One circle per layer: area is time, height is its rate, the line is what was measured.

    profile    data.Profile; layers without work or bytes are left out.
    roof       data.Roof of the profile's backend, or None: then the view says why there is none
               (`reason`) and offers a board (action "add_board").
    can_measure  a roofline that is too low has a button (action "remeasure").
    height     of the chart and the words around it.
    colour_by, hidden_types  follow linked widgets.
    """

    profile = Plain(rows="layers", need=("layers",))
    roof = Plain(need=("gflops", "gbytes_per_s", "what"))
    reason = t.Unicode(tr("The roofline is measured on the device that runs the model."))
    can_measure = t.Bool(False)
    colour_by = t.Enum(["time", "type", "backend", "precision", "gflops", "change"], "time")
    hidden_types = t.List(t.Unicode())
    height = t.Int(432)

    def static_svg(self) -> str | None:
        """Return roofs and circles, the five costliest numbered and named below. What was measured
        is written above the chart, where no circle is."""
        if not self.profile or not self.roof:
            return None
        reach = {id(r): intensity(r) or 0.0 for r in self.profile["layers"]}
        rows = [r for r in self.profile["layers"] if r.get("gflops") and reach[id(r)]]
        width, height = _SIZE
        right, bottom = width - 16, height - 120
        whole = {"i8", "u8"} & {r.get("dtype") for r in rows}
        integers = (self.roof.get("integer_gops") or 0) if whole else 0
        top_rate = max([self.roof["gflops"], integers, *(r["gflops"] for r in rows)]) * 2
        most_x = max([10.0, *(reach[id(r)] for r in rows)]) * 2

        def x(value: float) -> float:
            return _LEFT + (right - _LEFT) * (math.log10(value) + 1.2) / (math.log10(most_x) + 1.2)

        def y(value: float) -> float:
            level = (math.log10(max(value, 0.1)) + 1) / (math.log10(top_rate) + 1)
            return _TOP + (bottom - _TOP) * (1 - level)

        picture = Picture(width, height, tr("Roofline"))
        powers = [10.0**e for e in range(-1, math.ceil(math.log10(top_rate)))]
        picture.grid(powers, y, _LEFT, right, [f"{p:g}" for p in powers])
        for exponent in range(-1, math.ceil(math.log10(most_x))):
            picture.text(x(10.0**exponent), bottom + 14, f"{10.0**exponent:g}", anchor="middle")
        knee = self.roof["gflops"] / self.roof["gbytes_per_s"]
        low = 10**-1.2
        picture.path(
            f"M{x(low):.1f} {y(self.roof['gbytes_per_s'] * low):.1f}L{x(knee):.1f} "
            f"{y(self.roof['gflops']):.1f}H{right}", INK, stroke_width=1.5,
        )  # fmt: skip
        if integers:
            bend = integers / self.roof["gbytes_per_s"]
            picture.path(
                f"M{x(knee):.1f} {y(self.roof['gflops']):.1f}L{x(bend):.1f} {y(integers):.1f}"
                f"H{right}", INK, stroke_dasharray="4 3",
            )  # fmt: skip
        label = tr(
            "{gflops:g} GFLOP/s measured ({what})",
            gflops=_rate(self.roof["gflops"]),
            what=self.roof["what"],
        )
        if integers:
            label += "; " + tr("{integers:g} GOP/s in int8 measured", integers=_rate(integers))
        picture.text(right, 12, label, anchor="end", fill=INK)
        above = sum(roof_part(r, self.roof) > _ABOVE for r in rows)
        if above:
            words = trn(
                "The roofline is too low: {n} layer is above it. "
                "The machine was busy when it was measured.",
                "The roofline is too low: {n} layers are above it. "
                "The machine was busy when it was measured.",
                above,
            )
            picture.text(_LEFT, 27, words, fill=BAD)
        most = max([r["median_ms"] for r in rows], default=1) or 1
        rows.sort(key=lambda r: -r["median_ms"])
        for row in rows:
            share = row["median_ms"] / most
            at, radius = (x(reach[id(row)]), y(row["gflops"])), 3 + 9 * share**0.5
            picture.circle(*at, radius, ramp("time", share**0.5), stroke="#fff", opacity=0.9)
        five = rows[:5]
        for rank, row in enumerate(five, 1):
            radius = 3 + 9 * (row["median_ms"] / most) ** 0.5
            picture.digit(x(reach[id(row)]), y(row["gflops"]) - radius - 3, rank)
        named = [f"{tail(row['name'], 60)} {number(row['median_ms'])} ms" for row in five]
        picture.ranking(named, _LEFT, height - 6 - RANK_ROW * 4)
        picture.text(
            (_LEFT + right) / 2, bottom + 30, tr("FLOP per byte"), anchor="middle", fill=SOFT
        )
        picture.text(8, 12, tr("GFLOP/s; area: time"))
        return str(picture)


def _rate(value: float) -> float:
    """Three digits, which is more than such a measurement repeats."""
    return float(f"{value:.3g}")
