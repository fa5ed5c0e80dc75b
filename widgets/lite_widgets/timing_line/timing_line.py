"""TimingLine: the one number, and how far to trust it."""

from __future__ import annotations

from typing import Any

from lite_messages import tr

from .._base import LiteWidget, Plain
from .._rows import row_value
from .._svg import INK, SOFT, Picture, columns
from ..formats import ms_text


class TimingLine(LiteWidget):
    """Median without the profiler, a bar of types ending in the rest, one honest sentence.

    profile  data.Profile. `rankable_us`, `runs`, `ran` and `warnings` are said when they are known.
    """

    profile = Plain(rows="layers", need=("layers",))

    def sums(self) -> dict[str, Any]:
        """Return {"total", "layers", "rest", "types": {type: value}} in ms or M instructions."""
        emulated = bool(self.profile.get("emulated"))
        types: dict[str, float] = {}
        for row in self.profile["layers"]:
            types[row["type"]] = types.get(row["type"], 0.0) + row_value(row, emulated)
        layers = (not emulated and self.profile.get("sum_ms")) or sum(types.values())
        total = layers if emulated else self.profile["total_ms"]["median"]
        return {"total": total, "layers": layers, "rest": max(0.0, total - layers), "types": types}

    def static_svg(self) -> str | None:
        """Return the headline and the bar."""
        if not self.profile:
            return None
        sums = self.sums()
        picture = Picture(760, 80 if self.profile.get("ran") else 64, tr("Total time"))
        unit = tr("M instructions") if self.profile.get("emulated") else "ms"
        total = ms_text(sums["total"], self.profile.get("step_ms"))
        picture.text(8, 30, f"{total} {unit}", fill=INK, size=22, bold=True)
        x, left, width = 190.0, 190, 560
        for i, (name, value) in enumerate(sorted(sums["types"].items(), key=lambda p: -p[1])):
            share = width * value / max(sums["total"], sum(sums["types"].values()), 1e-12)
            grey = min(0xD0 + 10 * i, 0xF0)
            picture.rect(x, 12, share - 1, 20, f"#{grey:02x}{grey:02x}{grey:02x}")
            label = f"{name} {100 * value / sums['layers']:.0f} %"
            if share > 7 * columns(label) + 8:
                picture.text(x + 6, 26, label, fill=INK)
            x += share
        runs = (
            tr("median of {profile} runs, ", profile=self.profile["runs"])
            if self.profile.get("runs")
            else ""
        )
        note = tr(
            "{runs}layers add up to {sum} {unit}",
            runs=runs,
            sum=ms_text(sums["layers"]),
            unit=unit,
        )
        picture.text(left, 50, note, fill=SOFT)
        if self.profile.get("ran"):
            picture.text(left, 66, self.profile["ran"], fill=SOFT)
        return str(picture)
