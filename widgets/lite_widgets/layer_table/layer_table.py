"""LayerTable: a profile or a comparison as a table that sorts and filters, of any length."""

from __future__ import annotations

import traitlets as t
from lite_messages import tr

from .._base import LiteWidget, Plain
from .._rows import row_value
from .._svg import table
from ..formats import error_text, number

_STATIC_ROWS = 20


class LayerTable(LiteWidget):
    """Every layer once, virtualised: only the rows on screen are in the page.

    profile     data.Profile, or None.
    baseline    data.Profile: adds the Δ column.
    comparison  data.Comparison instead of a profile: error columns.
    colour_by   colours the share bars as in the chart (profile only).
    sort        column id with "-" before it for descending: "index", "name", "op", "kernel",
                "value", "change", "gflops", "iso", "acc". Set by clicks on headers.
    filter      text that layer, op or kernel must contain; set by the field.
    hidden_types, tolerance  follow linked widgets.
    """

    profile = Plain(rows="layers", need=("layers",))
    baseline = Plain(rows="layers", need=("layers",))
    comparison = Plain(rows="layers", need=("layers", "baseline", "candidate"))
    colour_by = t.Enum(["time", "type", "backend", "precision", "gflops", "change"], "time")
    hidden_types = t.List(t.Unicode())
    tolerance = t.Float(1e-2)
    sort = t.Unicode("index")
    filter = t.Unicode("")
    height = t.Int(440)

    def static_html(self) -> str:
        """Return the first 20 rows: slowest first, or in model order for a comparison."""
        if self.comparison:
            layers = self.comparison["layers"]
            rows = [
                [
                    r["index"] + 1,
                    r["name"],
                    r["op"],
                    error_text((r.get("isolated") or {}).get("rel_l2")),
                    error_text(r.get("rel_l2")),
                    error_text(r.get("max_abs")),
                ]
                for r in layers[:_STATIC_ROWS]
            ]
            head = ["#", tr("Layer"), "Op", "isolated", "accumulated", tr("max abs")]
        elif self.profile:
            layers = self.profile["layers"]
            emulated = bool(self.profile.get("emulated"))
            total = sum(row_value(r, emulated) for r in layers) or 1.0
            slowest = sorted(layers, key=lambda r: -row_value(r, emulated))[:_STATIC_ROWS]
            rows = [
                [r["index"] + 1, r["name"], r["op"], r.get("kernel") or "",
                 number(row_value(r, emulated)),
                 f"{100 * row_value(r, emulated) / total:.1f} %",
                 number(r.get("gflops") or None, 1)]
                for r in slowest
            ]  # fmt: skip
            unit = tr("M instr.") if emulated else "ms"
            head = ["#", tr("Layer"), "Op", tr("Kernel"), unit, tr("Share"), "GFLOP/s"]
        else:
            return ""
        more = len(layers) - len(rows)
        note = tr("{more} more rows", more=more) if more > 0 else ""
        return table(head, rows, note) + self._static_caption()
