"""GraphView: every layer once, in blocks that open in place."""

from __future__ import annotations

from itertools import groupby

import traitlets as t
from lite_messages import tr, trn

from .._base import LiteWidget, Plain
from .._rows import row_value
from .._svg import INK, LINE, SOFT, SUNK, TRACK, Picture, on, ramp
from ..formats import error_text, number

_WIDTH, _BAR = 560, 290
_STATES = {
    "within": "#e3e8ea",
    "propagated": "#f6c7a8",
    "differing": "#f6c7a8",
    "failing": "#d55e00",
}


class GraphView(LiteWidget):
    """A model's graph; blocks open in place, colour carries one measured thing.

    graph          data.GraphData, topological order.
    source_graph   data.GraphData of the file as read, or None: drawn beside it, linked through
                   each layer's `sources`.
    profile        data.Profile or None: colours and numbers are time, type, backend, …
    baseline       data.Profile to compare with, for colour_by="change".
    comparison     data.Comparison or None: if given, colours are errors; the border is the share
                   of time when `profile` is given too.
    changes        a model's diff (GraphDiff.to_dict) or None: colours are what was added, changed
                   and, in `source_graph`, deleted.
    tolerance      follows linked widgets while it is dragged; op_tolerances {op: tolerance}.
    colour_by      "time", "type", "backend", "precision", "gflops", "change".
    open_blocks    paths of open blocks; None lets the view choose (the two costliest; in a
                   comparison the first divergence). Set by clicks.
    hidden_types   layer types faded out (follows TypeSummary).
    """

    graph = Plain(rows="nodes", need=("nodes",))
    source_graph = Plain(rows="nodes", need=("nodes",))
    profile = Plain(rows="layers", need=("layers",))
    baseline = Plain(rows="layers", need=("layers",))
    comparison = Plain(rows="layers", need=("layers", "baseline", "candidate"))
    changes = Plain(need=("changes",))
    tolerance = t.Float(1e-2)
    op_tolerances = t.Dict()
    colour_by = t.Enum(["time", "type", "backend", "precision", "gflops", "change"], "time")
    open_blocks = t.List(t.Unicode(), default_value=None, allow_none=True)
    hidden_types = t.List(t.Unicode())
    title = t.Unicode(tr("Graph"))
    height = t.Int(496)

    def static_svg(self) -> str | None:
        """Return the blocks as bars of their layers: width and colour are time."""
        if not self.graph:
            return None
        emulated = bool(self.profile and self.profile.get("emulated"))
        rows = {row["name"]: row for row in (self.profile or {}).get("layers", [])}
        cost = {
            n["name"]: row_value(rows.get(n["name"], {}), emulated) for n in self.graph["nodes"]
        }
        most = max([*cost.values(), 1e-12])
        errors = {row["name"]: row for row in (self.comparison or {}).get("layers", [])}
        blocks = [(k, list(v)) for k, v in groupby(self.graph["nodes"], lambda n: n["block"])]
        picture = Picture(
            _WIDTH, 34 * len(blocks) + 24, tr("Graph of {model}", model=self.graph.get("name", ""))
        )
        slowest = sorted(cost, key=lambda name: -cost[name])[:5]
        for i, (name, nodes) in enumerate(blocks):
            y = 8 + 34 * i
            total = sum(cost[n["name"]] for n in nodes)
            picture.rect(6, y, _WIDTH - 12, 28, SUNK, stroke=LINE, rx=5)
            picture.text(14, y + 18, name.split("/")[-1][:20], fill=INK, bold=True)
            share = sum(max(cost[n["name"]], most * 0.02) for n in nodes)
            x = 130.0
            for node in nodes:
                width = _BAR * max(cost[node["name"]], most * 0.02) / share
                fill = ramp("time", (cost[node["name"]] / most) ** 0.5) if rows else TRACK
                if errors:
                    fill = _STATES[errors.get(node["name"], {}).get("state", "within")]
                picture.rect(x, y + 8, width - 1, 12, fill, stroke=SOFT, stroke_opacity=0.3)
                if node["name"] in slowest and rows and not errors and width > 60:
                    text = node["name"].split("/")[-1]
                    picture.text(x + 4, y + 18, text, fill=on(fill), size=10)
                x += width
            worst = max(
                (errors.get(n["name"], {}).get("rel_l2") or 0.0 for n in nodes), default=0.0
            )
            value = (
                tr("max {value}", value=error_text(worst))
                if errors
                else number(total)
                if rows
                else ""
            )
            count = trn("{n} layer", "{n} layers", len(nodes))
            note = " · ".join(part for part in (count, value) if part)
            picture.text(_WIDTH - 14, y + 18, note, anchor="end")
        if errors:
            words = tr(
                "gray: within the tolerance · light: propagates an error · dark: fails on its own"
            )
            picture.text(14, picture.height - 4, words)
        elif rows:
            unit = tr("M instructions") if emulated else "ms"
            picture.text(14, picture.height - 4, tr("width and color: {unit}", unit=unit))
        return str(picture)
