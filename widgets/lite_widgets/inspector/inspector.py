"""Inspector: everything about the selected layer, and what to try."""

from __future__ import annotations

import traitlets as t
from lite_messages import tr

from .._base import LiteWidget, Plain, PlainList
from .._svg import table
from ..formats import number


class Inspector(LiteWidget):
    """Kernel and why, shapes, sources, time and rate, other backends, advice, overrides.

    layer     one row of data.Profile, or None: "pick a layer".
    count     how many layers there are; total_ms of the profile; emulated: no ms, but the layer's
              instructions and its share of `instructions`, those of all layers.
    roof      data.Roof: adds the share of the layer's roof.
    others    [{"backend", "median_ms"}] of the same layer elsewhere.
    advice    {"text", "button": word, "code": Python} or None.
    backends, precisions     what an override may choose; empty lists hide the choice.
    override_backend, override_precision   "" = as planned; set by the choices.
    current   {"backend", "precision"}: what holds now; the button waits for another choice.
    also      names of other selected layers: the choices are for them too.
    measured  {"before_ms", "after_ms", "text"}: the result of the last try, or None.

    Actions: {"id": "advice", "code"}, {"id": "measure", "layers", "backend", "precision"}.
    """

    layer = Plain(need=("name",))
    count = t.Int(0)
    total_ms = t.Float(0.0)
    emulated = t.Bool(False)
    instructions = t.Int(0)
    roof = Plain(need=("gflops", "gbytes_per_s"))
    others = PlainList(need=("backend",))
    advice = Plain(need=("text",))
    backends = t.List(t.Unicode())
    precisions = t.List(t.Unicode())
    override_backend = t.Unicode("")
    override_precision = t.Unicode("")
    current = t.Dict()
    also = t.List(t.Unicode())
    measured = Plain(need=("before_ms", "after_ms"))

    def static_html(self) -> str:
        """Return the facts as a table."""
        if not self.layer:
            return ""
        row = self.layer
        cost = (
            [tr("Instructions"), f"{row.get('instructions') or 0:,}"]
            if self.emulated
            else [tr("Time"), f"{number(row.get('median_ms'))} ms"]
        )
        facts = [
            [tr("Kernel"), f"{row.get('kernel', '')} {row.get('why', '')}"],
            cost,
            [tr("From"), " + ".join(row.get("sources") or [])],
        ]
        return table([row["name"], str(row.get("op", ""))], facts) + self._static_caption()
