"""Drawing static pictures in plain Python: what a saved notebook shows where no kernel runs.

The colours are those of the light theme, written out, because GitHub and nbviewer know no theme.
Every text that is put into a picture is escaped.
"""

from __future__ import annotations

import html
import math
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any

INK, SOFT, LINE, GRID, SUNK = "#222222", "#666666", "#cccccc", "#e9ebed", "#f6f7f8"
ACCENT, BAD, TRACK = "#0b7285", "#b8410b", "#e7eaec"
SCALES = {
    "time": ("#f7f0e3", "#f5d798", "#eba94a", "#c66f1c", "#7f3a0c"),
    "rate": ("#eef3f6", "#b9d3df", "#6fa8c0", "#2f7593", "#0d3f57"),
    "over": ("#f6c7a8", "#e8894a", "#d55e00", "#9a3c00", "#6b2700"),
    "within": ("#f1f3f4", "#f1f3f4", "#e3e8ea", "#d3dadd"),
    "change": ("#2166ac", "#92c5de", "#f2f2f2", "#fdb863", "#b35806"),
}
BACKENDS = {"x86": "#0072b2", "opencl": "#e69f00", "arm": "#b6568c", "reference": "#868e96"}
BRACKET_ROW, RANK_ROW = 18, 15  # height of a row of brackets with their names, of a ranking's line
FONT = "font-family:system-ui,'Segoe UI',Helvetica,Arial,sans-serif"


def ramp(scale: str, t: float) -> str:
    """Return the colour of a named scale at t, clamped to 0…1."""
    stops = SCALES[scale]
    at = max(0.0, min(0.9999, t)) * (len(stops) - 1)
    i = int(at)
    a, b = stops[i], stops[i + 1]
    mixed = (
        round(int(a[k : k + 2], 16) * (1 - at + i) + int(b[k : k + 2], 16) * (at - i))
        for k in (1, 3, 5)
    )
    return "#" + "".join(f"{value:02x}" for value in mixed)


def on(fill: str) -> str:
    """Return black or white, whichever contrasts more with a fill: at least 4.58 to 1."""
    parts = (int(fill[k : k + 2], 16) / 255 for k in (1, 3, 5))
    linear = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts)
    luminance = sum(weight * v for weight, v in zip((0.2126, 0.7152, 0.0722), linear))
    return "#000000" if (luminance + 0.05) ** 2 >= 0.05 * 1.05 else "#ffffff"


def nice(value: float) -> float:
    """Return the smallest round number that is not below `value` (1 for nothing)."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value) + 1e-9)
    steps = (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)
    return next((s * power for s in steps if s * power >= value * 0.999999), 10 * power)


def ticks(low: float, high: float, n: int = 4) -> list[float]:
    """Return about `n` round values between two others, as the live charts have them."""
    raw = (high - low) / n
    power = 10.0 ** math.floor(math.log10(raw) + 1e-9)
    step = next(s for s in (1, 2, 2.5, 5, 10) if s * power >= raw * 0.999) * power
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{i * step:.12g}") for i in range(first, last + 1)]


def tail(name: str, most: int = 34) -> str:
    """Return a long name by its end, which tells it from its neighbours."""
    return name if len(name) <= most else f"\N{HORIZONTAL ELLIPSIS}{name[1 - most :]}"


def columns(text: str) -> int:
    """Return how many Latin letters are as wide as a text: a Chinese sign takes two."""
    return sum(2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text)


def bracket_rows(rows: Sequence[dict[str, Any]]) -> int:
    """Return how many rows of brackets stand under a chart of these layers."""
    return 2 if any(row.get("region") for row in rows) else 1


def code_block(code: str) -> str:
    """Return code as HTML in a fixed-width font, which not every page gives `pre`."""
    style = "font-family:ui-monospace,Menlo,Consolas,monospace;white-space:pre-wrap"
    return f'<pre style="{style}">{html.escape(code)}</pre>'


class Picture:
    """An SVG drawing that grows by marks; ``str(picture)`` is the file."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.width, self.height = width, height
        self._texts: list[tuple[float, float, float]] = []  # left and right end, line
        self._dots: list[tuple[float, float, float]] = []  # middle, radius
        self._marks = [f"<title>{html.escape(title)}</title>"]

    def rect(self, x: float, y: float, w: float, h: float, fill: str, **extra: object) -> None:
        """Add a rectangle; keyword names are attributes (stroke_width → stroke-width)."""
        size = f'x="{x:.1f}" y="{y:.1f}" width="{max(w, 0):.1f}" height="{max(h, 0):.1f}"'
        self._marks.append(f'<rect {size} fill="{fill}"{_attributes(extra)}/>')

    def path(self, d: str, stroke: str = SOFT, fill: str = "none", **extra: object) -> None:
        """Add a path."""
        self._marks.append(f'<path d="{d}" stroke="{stroke}" fill="{fill}"{_attributes(extra)}/>')

    def line(
        self, x0: float, y0: float, x1: float, y1: float, stroke: str = GRID, **extra: Any
    ) -> None:
        """Add a straight line."""
        self.path(f"M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}", stroke, **extra)

    def circle(self, x: float, y: float, r: float, fill: str, **extra: object) -> None:
        """Add a circle."""
        self._dots.append((x, y, r))
        at = f'cx="{x:.1f}" cy="{y:.1f}" r="{r:.1f}"'
        self._marks.append(f'<circle {at} fill="{fill}"{_attributes(extra)}/>')

    def image(self, x: float, y: float, w: float, h: float, source: str) -> None:
        """Add an image by its address, stretched, every pixel a rectangle."""
        size = f'x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}"'
        style = 'preserveAspectRatio="none" style="image-rendering:pixelated"'
        self._marks.append(f'<image {size} href="{html.escape(source)}" {style}/>')

    def text(
        self, x: float, y: float, text: object, *, anchor: str = "start", fill: str = SOFT,
        size: int = 11, bold: bool = False,
    ) -> None:  # fmt: skip
        """Add a text; anchor is start, middle or end."""
        weight = ' font-weight="600"' if bold else ""
        wide = 0.6 * size * columns(str(text))
        start = x - wide * {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor]
        self._texts.append((start, start + wide, y))
        self._marks.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}" '
            f'font-size="{size}"{weight}>{html.escape(str(text))}</text>'
        )

    def beside(self, x: float, y: float, text: str, **how: Any) -> None:
        """Add the text of a mark: above or below, right or left, where no other text or dot is."""
        wide = 0.6 * 11 * columns(text)
        lines = (y - 10, y + 18, y - 24, y + 32)
        seats = [(side, line) for line in lines for side in ("start", "end")]

        def taken(seat: tuple[str, float]) -> bool:
            start, line = (x + 8 if seat[0] == "start" else x - 8 - wide), seat[1]
            outside = start < 0 or start + wide > self.width or not 11 < line < self.height - 18
            return (
                outside
                or any(
                    a < start + wide and start < b and abs(line - other) < 13
                    for a, b, other in self._texts
                )
                or any(
                    start < cx + r and cx - r < start + wide and cy - r < line < cy + r + 9
                    for cx, cy, r in self._dots
                )
            )

        anchor, line = next((seat for seat in seats if not taken(seat)), seats[0])
        self.text(x + 8 if anchor == "start" else x - 8, line, text, anchor=anchor, **how)

    def grid(
        self,
        values: Sequence[float],
        at: Callable[[float], float],
        left: float,
        right: float,
        labels: Sequence[str],
    ) -> None:  # fmt: skip
        """Add horizontal grid lines at ``at(value)`` with labels left of them."""
        for value, label in zip(values, labels, strict=True):
            y = at(value)
            self.line(left, y, right, y)
            self.text(left - 6, y + 4, label, anchor="end")

    def legend(self, x: float, y: float, scale: str, low: str, high: str) -> None:
        """Add a colour ramp with the words at its ends."""
        self.text(x, y + 8, low, anchor="end")
        for i in range(18):
            self.rect(x + 6 + i * 4, y, 4.5, 8, ramp(scale, i / 17))
        self.text(x + 84, y + 8, high)

    def digit(self, x: float, y: float, number: int) -> None:
        """Add the number of a mark above it, higher where another text stands already."""
        while any(a < x + 4 and x - 4 < b and abs(y - line) < 11 for a, b, line in self._texts):
            y -= 3
        self.text(x, y, number, anchor="middle", fill=INK, bold=True)

    def ranking(self, labels: Sequence[str], left: float, y: float) -> None:
        """Add what the numbers of marks stand for, a line each."""
        for i, label in enumerate(labels):
            self.text(left, y + i * RANK_ROW, i + 1, fill=INK, bold=True)
            self.text(left + 14, y + i * RANK_ROW, label, fill=INK)

    def brackets(self, rows: Sequence[dict[str, Any]], left: float, step: float, y: float) -> None:
        """Add brackets of blocks under a model-order axis, and below them those of regions."""
        blocks = [row["block"].split("/")[-1] for row in rows]
        if bracket_rows(rows) == 1:
            self._bracket_row(blocks, left, step, y)
            return
        regions = [str(row.get("region") or "") for row in rows]
        # A block that is a whole region is named in the region's row.
        upper = ["" if region.startswith(block) else block
                 for block, region in zip(blocks, regions, strict=True)]  # fmt: skip
        named = self._bracket_row(upper, left, step, y)
        self._bracket_row(regions, left, step, y + BRACKET_ROW if named else y + 5)

    def _bracket_row(self, names: Sequence[str], left: float, step: float, y: float) -> bool:
        """A bracket per run of one name, which is written where it fits; whether one did."""
        first, named = 0, False
        for i in range(1, len(names) + 1):
            if i < len(names) and names[i] == names[first]:
                continue
            x0, x1 = left + first * step + 1.5, left + i * step - 1.5
            self.path(f"M{x0:.1f} {y:.1f}v3H{x1:.1f}v-3", SOFT, stroke_opacity=0.45)
            texts = (names[first], names[first].split(": ")[0])
            text = next((t for t in texts if x1 - x0 > 6 * columns(t)), "")
            if text:
                self.text((x0 + x1) / 2, y + 15, text, anchor="middle")
                named = True
            first = i
        return named

    def __str__(self) -> str:
        size = f'width="{self.width}" height="{self.height}"'
        box = f'viewBox="0 0 {self.width} {self.height}"'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} {box} style="{FONT};max-width:100%;'
            f'background:#fff" role="img">{"".join(self._marks)}</svg>'
        )


def _attributes(extra: dict[str, object]) -> str:
    return "".join(f' {name.replace("_", "-")}="{value}"' for name, value in extra.items())


def table(head: Sequence[str], rows: Sequence[Sequence[object]], note: str = "") -> str:
    """Return an HTML table; cells that are numbers are written to the right."""
    cell = "padding:2px 8px;border-bottom:1px solid #eee"
    top = "".join(f'<th style="{cell};text-align:left">{html.escape(h)}</th>' for h in head)
    body = "".join(
        "<tr>"
        + "".join(
            f'<td style="{cell};text-align:{"right" if isinstance(v, (int, float)) else "left"}">'
            f"{html.escape(str(v))}</td>"
            for v in row
        )
        + "</tr>"
        for row in rows
    )
    tail = f'<p style="font:11px sans-serif">{html.escape(note)}</p>' if note else ""
    return f'<table style="{FONT};font-size:12px;margin-left:0"><tr>{top}</tr>{body}</table>{tail}'
