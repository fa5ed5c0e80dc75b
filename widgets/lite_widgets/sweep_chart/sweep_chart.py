"""SweepChart: latency against throughput; the Pareto front and the best combination for a goal."""

from __future__ import annotations

import traitlets as t
from lite_messages import tr

from .._base import LiteWidget, PlainList
from .._svg import ACCENT, INK, SOFT, Picture, nice, ticks

_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 20, 28, 38
_SIZE = (640, 320)


class SweepChart(LiteWidget):
    """Every measured combination as a dot, the Pareto front as a line, the best one filled.

    cells   [{"label", "latency_ms", "throughput", "note", "front": bool, "best": bool}]; throughput
            in samples per second, note is a second line of the tooltip (metric, memory).
    max_ms  the latency goal, a vertical line; 0 for none.
    min_rate  the throughput goal in samples per second, a horizontal line; 0 for none.
    """

    title = t.Unicode("")
    cells = PlainList(need=("label", "latency_ms", "throughput"))
    max_ms = t.Float(0.0)
    min_rate = t.Float(0.0)
    height = t.Int(320)

    def static_svg(self) -> str | None:
        """Return the dots, the front and the goal."""
        if not self.cells:
            return None
        width, height = _SIZE
        most_x = nice(max([self.max_ms, *(c["latency_ms"] for c in self.cells)]))
        most_y = nice(max([self.min_rate, *(c["throughput"] for c in self.cells)]))
        right, bottom = width - _RIGHT, height - _BOTTOM

        def x(ms: float) -> float:
            return _LEFT + (right - _LEFT) * ms / most_x

        def y(rate: float) -> float:
            return bottom - (bottom - _TOP) * rate / most_y

        picture = Picture(width, height, tr("Latency against throughput"))
        marks = ticks(0, most_y)
        picture.grid(marks, y, _LEFT, right, [f"{m:.12g}" for m in marks])
        for mark in ticks(0, most_x, 5):
            picture.text(x(mark), bottom + 15, f"{mark:.12g}", anchor="middle")
        if self.max_ms:
            picture.line(x(self.max_ms), _TOP, x(self.max_ms), bottom, ACCENT, stroke_width=1.5)
        if self.min_rate:
            goal = y(self.min_rate)
            picture.line(_LEFT, goal, right, goal, ACCENT, stroke_width=1.5)
        front = sorted((c for c in self.cells if c.get("front")), key=lambda c: c["latency_ms"])
        path = "L".join(f"{x(c['latency_ms']):.1f} {y(c['throughput']):.1f}" for c in front)
        if path:
            picture.path(f"M{path}", SOFT)
        for cell in self.cells:
            fill = ACCENT if cell.get("best") else SOFT if cell.get("front") else "#fff"
            picture.circle(x(cell["latency_ms"]), y(cell["throughput"]), 4.5, fill, stroke=SOFT)
        best = next((c for c in self.cells if c.get("best")), None)
        if best is not None:
            picture.text(right, 14, best["label"], anchor="end", fill=INK, bold=True)
        middle = (_LEFT + right) / 2
        picture.text(middle, height - 6, tr("latency of a batch, ms"), anchor="middle")
        picture.text(8, 14, tr("samples/s"))
        return str(picture)
