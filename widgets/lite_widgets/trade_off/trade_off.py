"""TradeOff: accuracy against latency and size; drag the budget."""

from __future__ import annotations

from typing import Any

import traitlets as t
from lite_messages import tr

from .._base import LiteWidget, Plain, PlainList
from .._svg import ACCENT, INK, SOFT, Picture, ticks
from ..formats import bytes_text, number

_LEFT, _SIZE = 56, (560, 360)


class TradeOff(LiteWidget):
    """Every version as a circle (area: its weights); the best one within the budget is filled.

    points    [data.TradeOffPoint], latency_ms ± latency_ci_ms; those of `method` are joined, other
              methods are dotted.
    method    whose versions may be chosen.
    float_    {"accuracy", "latency_ms", "bytes"} of the unquantized model.
    budget    points of accuracy that may be lost; set by dragging.
    best      index into `points` of the best version within the budget (-1 for none); made from
              them, also while dragging in the page.
    metric    what accuracy is: "lines read right", "top-1", …; backend: where latency was measured.
    """

    points = PlainList(need=("method", "accuracy", "latency_ms", "bytes"))
    method = t.Unicode("kl")
    float_ = Plain(need=("accuracy", "latency_ms", "bytes"))
    budget = t.Float(0.5)
    best = t.Int(-1)
    metric = t.Unicode("accuracy")
    backend = t.Unicode("x86")
    height = t.Int(392)

    @t.observe("points", "method", "float_", "budget")
    def _choose(self, _change: Any) -> None:
        self.best = self.choose(self.budget)

    def choose(self, budget: float) -> int:
        """Return the index of the fastest version that loses at most `budget` points, or -1.
        Of those that the measurement cannot tell from the fastest: the most accurate, then the
        smallest."""
        if not self.float_:
            return -1
        floor = self.float_["accuracy"] - budget - 1e-9
        inside = [
            i for i, p in enumerate(self.points)
            if p["method"] == self.method and p["accuracy"] >= floor
        ]  # fmt: skip
        if not inside:
            return -1
        fastest = min(inside, key=lambda i: self.points[i]["latency_ms"])
        alike = [i for i in inside if _as_fast(self.points[i], self.points[fastest])]
        return min(alike, key=lambda i: (-self.points[i]["accuracy"], self.points[i]["bytes"]))

    def static_svg(self) -> str | None:
        """Return versions, budget and the chosen one."""
        if not self.points or not self.float_:
            return None
        everything = [*self.points, self.float_]
        width, height = _SIZE
        top, bottom, right = 28, height - 36, width - 20
        fast = min(p["latency_ms"] for p in everything) * 0.85
        slow = max(p["latency_ms"] for p in everything) * 1.08
        # as in trade_off.js: room below, and no accuracy above 100 %
        low, high = (pick(p["accuracy"] for p in everything) for pick in (min, max))
        span = max(high - low, 2.5)
        low = min(low - span * 0.18, self.float_["accuracy"] - self.budget - 0.5)
        high = min(max(100.0, high), high + span * 0.14)

        def x(p: dict[str, Any]) -> float:
            return _LEFT + (right - _LEFT) * float((p["latency_ms"] - fast) / (slow - fast))

        def y(accuracy: float) -> float:
            return bottom - (bottom - top) * float((accuracy - low) / (high - low))

        picture = Picture(width, height, tr("Accuracy against latency"))
        marks = ticks(low, high)
        picture.grid(marks, y, _LEFT, right, [f"{m:.12g} %" for m in marks])
        for ms in ticks(fast, slow, 5):
            picture.text(x({"latency_ms": ms}), bottom + 15, f"{ms:.12g}", anchor="middle")
        limit = min(y(self.float_["accuracy"] - self.budget), bottom)
        picture.line(_LEFT, limit, right, limit, ACCENT, stroke_width=1.5)
        budget = tr("budget {points} points", points=number(-self.budget, 1))
        picture.text(right, limit + 13, budget, anchor="end", fill=ACCENT)
        most = max(1, *(p["bytes"] for p in everything))  # 0 without any weights
        for i, p in enumerate(self.points):
            mine = p["method"] == self.method
            radius = 2.2 + 5 * p["bytes"] / most
            fill = ACCENT if i == self.best else "#fff"
            picture.circle(x(p), y(p["accuracy"]), radius if mine else 2, fill, stroke=SOFT)
        picture.circle(x(self.float_), y(self.float_["accuracy"]), 7, SOFT)
        if self.best >= 0:
            p = self.points[self.best]
            note = f"{p['accuracy']:.1f} %, {p['latency_ms']:.3g} ms, {bytes_text(p['bytes'])}"
            picture.beside(x(p), y(p["accuracy"]), note, fill=INK, bold=True)
        picture.beside(x(self.float_), y(self.float_["accuracy"]), "fp32", fill=INK)
        picture.text(
            (_LEFT + right) / 2,
            height - 4,
            tr("latency on {backend}, ms", backend=self.backend),
            anchor="middle",
        )
        picture.text(8, 14, self.metric)
        return str(picture)


def _as_fast(point: dict[str, Any], fastest: dict[str, Any]) -> bool:
    """Do the intervals of the two latencies overlap?"""
    noise = (point.get("latency_ci_ms") or 0.0) + (fastest.get("latency_ci_ms") or 0.0)
    return bool(point["latency_ms"] - fastest["latency_ms"] <= noise)
