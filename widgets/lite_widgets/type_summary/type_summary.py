"""TypeSummary: which kinds of layer the time, the work and the weights go into."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import traitlets as t
from lite_messages import tr

from .._base import LiteWidget, Plain
from .._rows import row_value
from .._svg import table


class TypeSummary(LiteWidget):
    """One row per layer type; ticks filter the chart and the graph.

    profile       data.Profile.
    columns       "time" (layers, ms, share of what is ticked) or "cost" (layers, share of work,
                  share of weights; needs `macs` and optionally `weight_bytes` per layer).
    hidden_types  unticked types; follows and leads linked widgets.
    """

    profile = Plain(rows="layers", need=("layers",))
    columns = t.Enum(["time", "cost"], "time")
    hidden_types = t.List(t.Unicode())
    title = t.Unicode("")

    def totals(self) -> dict[str, dict[str, Any]]:
        """Return {type: {"layers", "value", "macs", "weight_bytes"}}, largest first."""
        emulated = bool(self.profile and self.profile.get("emulated"))
        sums: dict[str, dict[str, Any]] = defaultdict(
            lambda: {"layers": 0, "value": 0.0, "macs": 0, "weight_bytes": 0}
        )
        for row in (self.profile or {}).get("layers", []):
            entry = sums[row["type"]]
            entry["layers"] += 1
            entry["value"] += row_value(row, emulated)
            entry["macs"] += row.get("macs") or 0
            entry["weight_bytes"] += row.get("weight_bytes") or 0
        return dict(sorted(sums.items(), key=lambda item: -item[1]["value"]))

    def static_html(self) -> str:
        """Return the table."""
        totals = self.totals()
        if not totals:
            return ""
        whole = sum(entry["value"] for entry in totals.values()) or 1.0
        unit = tr("M instr.") if self.profile.get("emulated") else "ms"
        rows = [
            [name, e["layers"], round(e["value"], 3), f"{100 * e['value'] / whole:.1f} %"]
            for name, e in totals.items()
        ]
        return (
            table([tr("Layer type"), tr("Layers"), unit, tr("Share")], rows)
            + self._static_caption()
        )
