"""Waterfall: from one total to another, the largest changes first."""

from __future__ import annotations

from itertools import accumulate

import traitlets as t
from lite_messages import tr, trn

from .._base import LiteWidget, Plain
from .._svg import INK, SOFT, Picture, nice, ramp, tail
from ..formats import number

_LEFT, _ROW, _WIDTH, _NS = 214, 22, 734, 1e-6
_LETTERS = 30  # that _LEFT has room for


class Waterfall(LiteWidget):
    """Why 12.4 became 9.1 ms: one bar per changed layer, the small ones together.

    change         data.ProfileChange, largest changes first.
    most           how many changes have a bar of their own.
    runs           [[id, text]] that can be the earlier profile; against: the chosen id, set by the
                   choice.
    """

    change = Plain(need=("baseline", "candidate", "before_ns", "after_ns", "changes"))
    most = t.Int(12)
    runs = t.List(t.List(t.Unicode()))
    against = t.Unicode("")
    title = t.Unicode(tr("What changed"))

    def static_svg(self) -> str | None:
        """Return the bars of the largest changes between the two totals."""
        if not self.change:
            return None
        changes = self.change["changes"]
        bars, others = changes[: self.most], changes[self.most :]
        start, end = self.change["before_ns"] * _NS, self.change["after_ns"] * _NS
        steps = [(x["name"], x["delta_ns"] * _NS) for x in bars]
        if others:
            steps.append(
                (trn("{n} more", "{n} more", len(others)), sum(x["delta_ns"] for x in others) * _NS)
            )
        picture = Picture(_WIDTH, _ROW * (len(steps) + 2) + 16, tr("What changed"))
        # Medians of parts do not add up to the total's: a bar may end below zero.
        ends = [0.0, end, *accumulate((delta for _, delta in steps), initial=start)]
        low, high = min(ends), max(ends)
        scale = 400 / nice((high - low) * 1.05)
        zero, at = _LEFT - low * scale, start
        picture.text(_LEFT - 6, 20, tail(self.change["baseline"], _LETTERS), anchor="end", fill=INK)
        picture.rect(zero, 8, start * scale, 16, SOFT)
        picture.text(zero + start * scale + 6, 20, f"{number(start)} ms", fill=INK)
        for i, (name, delta) in enumerate(steps):
            y = 8 + _ROW * (i + 1)
            picture.text(_LEFT - 6, y + 12, tail(name, _LETTERS), anchor="end")
            fill = ramp("change", 0.95 if delta > 0 else 0.05)
            x, width = zero + min(at, at + delta) * scale, max(abs(delta) * scale, 1)
            picture.rect(x, y, width, 16, fill)
            sign = "+" if delta > 0 else ""
            picture.text(zero + max(at, at + delta) * scale + 6, y + 12, sign + number(delta))
            at += delta
        y = 8 + _ROW * (len(steps) + 1)
        picture.text(
            _LEFT - 6, y + 12, tail(self.change["candidate"], _LETTERS), anchor="end", fill=INK
        )
        picture.rect(zero, y, end * scale, 16, SOFT)
        picture.text(zero + end * scale + 6, y + 12, f"{number(end)} ms", fill=INK)
        return str(picture)
