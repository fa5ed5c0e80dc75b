"""ErrorStrip: the error of every layer, isolated and accumulated, against a tolerance."""

from __future__ import annotations

import math
from typing import Any

import traitlets as t

from .._base import LiteWidget, Plain
from .._svg import ACCENT, BAD, INK, SOFT, Picture, error_text
from .verdict import judge, verdict

_LEFT, _SIZE = 56, (760, 260)


class ErrorStrip(LiteWidget):
    """Log error over layers: stems are isolated, the hollow line is accumulated.

    comparison     data.Comparison. Besides the keys of `lite compare --json` it may have
                   usual_tolerance (what rounding explains for this pair), outputs_agree,
                   outputs_note, and per layer a `hint` (a sentence of evidence for the verdict).
                   `ran` says which backends ran the layers.
    tolerance      float; dragging the line or the slider sets it, at most every 120 ms.
    op_tolerances  {op: tolerance}: the line becomes a stepped band.
    by_operator    each operator has its own tolerance (the rows' `tolerance`), which moves along
                   with the line; set by a tick, which fills `op_tolerances`.
    metric         "rel_l2", "max_abs" or "mean_abs".
    selected       a click selects; the verdict's "Show it" selects the failing layer.

    Actions: {"id": "run_on_a", "layer"} (run this layer on the first backend),
    {"id": "isolate"} (the isolated pass is missing and wanted).
    """

    comparison = Plain(rows="layers", need=("layers", "baseline", "candidate"))
    tolerance = t.Float(1e-2)
    op_tolerances = t.Dict()
    by_operator = t.Bool(False)
    metric = t.Enum(["rel_l2", "max_abs", "mean_abs"], "rel_l2")
    height = t.Int(210)

    def judged(self) -> dict[str, Any] | None:
        """Return every layer's state at the current tolerance (see verdict.judge)."""
        if not self.comparison:
            return None
        return judge(self.comparison, self.tolerance, self.op_tolerances, self.metric)

    def verdict(self) -> dict[str, Any] | None:
        """Return the sentence that the strip shows (see verdict.verdict)."""
        judged = self.judged()
        return judged and verdict(self.comparison, self.tolerance, judged)

    def static_svg(self) -> str | None:
        """Return verdict and strip as one picture."""
        judged = self.judged()
        if not judged:
            return None
        layers = judged["layers"]
        width, height = _SIZE
        top, bottom, right = 62, height - 28, width - 12
        known = [e for la in layers for e in (la["iso"], la["acc"]) if e]
        low = math.floor(math.log10(max(min(known, default=1e-7), 1e-8))) - 0.4
        high = max(0, math.ceil(math.log10(max(known, default=1))))
        step = (right - _LEFT) / max(len(layers), 1)

        def y(value: float | None) -> float:
            level = math.log10(max(value or 0.0, 10**low))
            return top + (bottom - top) * (1 - (level - low) / (high - low))

        picture = Picture(width, height, "Error per layer")
        said = verdict(self.comparison, self.tolerance, judged)
        picture.text(8, 20, said["text"].replace("**", ""), fill=INK, size=13, bold=True)
        powers = range(math.ceil(low), high + 1)
        picture.grid([10.0**e for e in powers], y, _LEFT, right, [f"1e{e}" for e in powers])
        line = "".join(
            f"{'L' if i else 'M'}{_LEFT + (i + 0.5) * step:.1f} {y(layer['acc']):.1f}"
            for i, layer in enumerate(layers)
        )
        picture.path(line, SOFT)
        for i, layer in enumerate(layers):
            x, own = _LEFT + (i + 0.5) * step, layer["state"] == "own"
            if layer["iso"] is not None:
                at = y(layer["iso"])
                picture.line(x, bottom, x, at, BAD if own else SOFT, stroke_width=2 if own else 1)
                if own:
                    picture.path(f"M{x:.1f} {at - 6:.1f}l6 6-6 6-6-6z", "none", BAD)
                else:
                    picture.circle(x, at, 2, SOFT)
            over = layer["state"] != "within"
            picture.circle(x, y(layer["acc"]), 2.4, "#fff", stroke=BAD if over else SOFT)
        limit = y(self.tolerance)
        picture.line(_LEFT, limit, right, limit, ACCENT, stroke_width=1.5)
        text = f"tolerance {error_text(self.tolerance)}"
        picture.text(_LEFT + 6, limit - 5, text, fill=ACCENT, bold=True)
        for index in judged["own"][:5]:
            x = min(max(_LEFT + (index + 0.5) * step, _LEFT + 40), right - 40)
            picture.text(x, top - 8, layers[index]["name"], anchor="middle", fill=BAD, bold=True)
        legend = "stem: isolated · hollow line: accumulated · diamond: fails on its own · rel. L2"
        picture.text(8, 38, legend.replace("rel. L2", self.metric))
        blocks = [row["block"] for row in self.comparison["layers"]]
        picture.brackets(blocks, _LEFT, step, bottom + 4)
        return str(picture)
