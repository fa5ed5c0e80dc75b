"""ErrorStrip: the error of every layer, isolated and accumulated, against a tolerance."""

from __future__ import annotations

import math
import textwrap

import traitlets as t
from lite_messages import tr

from .._base import LiteWidget, Plain
from .._svg import (
    ACCENT,
    BAD,
    BRACKET_ROW,
    INK,
    RANK_ROW,
    SOFT,
    Picture,
    bracket_rows,
    columns,
    tail,
)
from ..formats import error_text

_LEFT, _SIZE = 56, (760, 260)
_LETTERS, _LINE = 92, 17  # of the verdict in a line; the height of one
_NAMED = 5  # layers that the static image names


class ErrorStrip(LiteWidget):
    """Log error over layers: stems are isolated, the hollow line is accumulated.

    comparison     data.Comparison: what `lite compare --json` writes. `notice` is the verdict in
                   the words of the screen (data.Verdict); without it, `verdict` is shown.
    tolerance      float; dragging the line or the slider sets it, at most every 120 ms. The line
                   marks the layers over it; the verdict stays what the engine found.
    op_tolerances  {op: tolerance}: the line becomes a stepped band.
    by_operator    each operator has its own tolerance (the rows' `tolerance`), which moves along
                   with the line; set by a tick, which fills `op_tolerances`.
    metric         "rel_l2", "max_abs" or "mean_abs".
    selected       a click selects; the verdict's "Show it" selects its layer.

    Actions: those of `notice`, with its layer: {"id": "run_on_a", "layer"}.
    """

    comparison = Plain(rows="layers", need=("layers", "baseline", "candidate"))
    tolerance = t.Float(1e-2)
    op_tolerances = t.Dict()
    by_operator = t.Bool(False)
    metric = t.Enum(["rel_l2", "max_abs", "mean_abs"], "rel_l2")
    height = t.Int(210)

    def static_svg(self) -> str | None:
        """Return verdict and strip as one picture."""
        if not self.comparison:
            return None
        layers = self.comparison["layers"]
        own = [(row.get("isolated") or {}).get(self.metric) for row in layers]
        whole = [row.get(self.metric) for row in layers]
        failing = [i for i, row in enumerate(layers) if row.get("state") == "failing"]
        ranked = min(len(failing), _NAMED) if len(failing) > 1 else 0
        said = (self.comparison.get("notice") or {}).get("what", self.comparison.get("verdict", ""))
        verdict = _lines(said.replace("**", ""))
        below = _LINE * max(len(verdict) - 1, 0)  # where what stands under the verdict begins
        width, height = _SIZE[0], _SIZE[1] + RANK_ROW * ranked + below
        top, right = 62 + below, width - 12
        bottom = height - 10 - BRACKET_ROW * bracket_rows(layers) - RANK_ROW * ranked
        known = [e for e in (*own, *whole) if e]
        low = math.floor(math.log10(max(min(known, default=1e-7), 1e-8))) - 0.4
        high = max(0, math.ceil(math.log10(max(known, default=1))))
        step = (right - _LEFT) / max(len(layers), 1)

        def y(value: float | None) -> float:
            level = math.log10(max(value or 0.0, 10**low))
            return top + (bottom - top) * (1 - (level - low) / (high - low))

        picture = Picture(width, height, tr("Error per layer"))
        for i, words in enumerate(verdict):
            picture.text(8, 20 + _LINE * i, words, fill=INK, size=13, bold=True)
        powers = range(math.ceil(low), high + 1)
        picture.grid([10.0**e for e in powers], y, _LEFT, right, [f"1e{e}" for e in powers])
        line = "".join(
            f"{'L' if i else 'M'}{_LEFT + (i + 0.5) * step:.1f} {y(value):.1f}"
            for i, value in enumerate(whole)
        )
        picture.path(line, SOFT)
        for i, row in enumerate(layers):
            x, state = _LEFT + (i + 0.5) * step, row.get("state", "within")
            fails = state == "failing"
            if own[i] is not None:
                at = y(own[i])
                width = 2 if fails else 1
                picture.line(x, bottom, x, at, BAD if fails else SOFT, stroke_width=width)
                if fails:
                    picture.path(f"M{x:.1f} {at - 6:.1f}l6 6-6 6-6-6z", "none", BAD)
                else:
                    picture.circle(x, at, 2, SOFT)
            ring = SOFT if state == "within" else BAD
            picture.circle(x, y(whole[i]), 2.4, "#fff", stroke=ring)
        limit = y(self.tolerance)
        picture.line(_LEFT, limit, right, limit, ACCENT, stroke_width=1.5)
        text = tr("tolerance {value}", value=error_text(self.tolerance))
        picture.text(_LEFT + 6, limit - 5, text, fill=ACCENT, bold=True)
        for rank, index in enumerate(failing[:_NAMED], 1):
            x = _LEFT + (index + 0.5) * step
            if len(failing) > 1:
                picture.digit(x, y(own[index]) - 10, rank)
                continue
            name = tail(layers[index]["name"], 60)
            half = 3.6 * columns(name)
            x = min(max(x, _LEFT + half), right - half)
            picture.text(x, top - 8, name, anchor="middle", fill=BAD, bold=True)
        if ranked:
            names = [layers[i]["name"] for i in failing[:_NAMED]]
            picture.ranking(
                [tail(name, 90) for name in names], _LEFT, height - 6 - RANK_ROW * (ranked - 1)
            )
        legend = tr(
            "stem: isolated · hollow line: accumulated · diamond: fails on its own · rel. L2"
        )
        picture.text(8, 38 + below, legend.replace("rel. L2", self.metric))
        picture.brackets(layers, _LEFT, step, bottom + 4)
        return str(picture)


def _lines(verdict: str) -> list[str]:
    """The verdict in lines that the picture has room for; a Chinese sign is as wide as two."""
    letters = _LETTERS * len(verdict) // max(columns(verdict), 1)
    return textwrap.wrap(verdict, max(letters, 1))
