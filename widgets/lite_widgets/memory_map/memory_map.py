"""MemoryMap: execution step × arena offset."""

from __future__ import annotations

import traitlets as t
from lite_messages import tr

from .._base import LiteWidget, Plain
from .._svg import INK, SOFT, Picture, ramp, ticks
from ..formats import bytes_text

_LEFT, _TOP, _SIZE = 56, 22, (700, 340)


class MemoryMap(LiteWidget):
    """Each rectangle is a tensor: where it lies, and from which step to which it lives.

    memory  {"tensors": [data.Tensor], "steps": names of the steps in order,
             "arena_bytes": size of the arena, "weight_bytes": optional, not in the arena}
    """

    memory = Plain(need=("tensors", "steps", "arena_bytes"))
    height = t.Int(360)

    def static_svg(self) -> str | None:
        """Return the map with its peak."""
        if not self.memory or not self.memory["tensors"]:
            return None
        tensors, steps = self.memory["tensors"], max(len(self.memory["steps"]), 1)
        width, height = _SIZE
        peak = max(tensor["offset"] + tensor["bytes"] for tensor in tensors)
        bottom, wide = height - 34, (width - _LEFT - 12) / steps

        def y(offset: float) -> float:
            return _TOP + (bottom - _TOP) * (1 - float(offset / (peak * 1.08)))

        picture = Picture(width, height, tr("Arena map"))
        unit, size = ("MB", 1e6) if peak >= 1e6 else ("kB", 1e3)
        marks = ticks(0, peak / size)
        picture.grid(
            marks, lambda mark: y(mark * size), _LEFT, width - 12, [f"{m:.12g}" for m in marks]
        )
        picture.text(_LEFT - 6, 12, unit, anchor="end")
        for tensor in tensors:
            end = tensor["offset"] + tensor["bytes"]
            picture.rect(
                _LEFT + tensor["first"] * wide, y(end),
                (tensor["last"] - tensor["first"] + 1) * wide - 1,
                max(y(tensor["offset"]) - y(end) - 0.7, 0.7),
                ramp("rate", 0.2 + 0.5 * tensor["bytes"] / peak), stroke=SOFT, stroke_opacity=0.2,
            )  # fmt: skip
        top = max(tensors, key=lambda tensor: tensor["offset"] + tensor["bytes"])
        picture.line(_LEFT, y(peak), width - 12, y(peak), INK, stroke_dasharray="3 3")
        note = tr("peak {size}, at {layer}", size=bytes_text(peak), layer=top["name"])
        picture.text(width - 12, y(peak) - 5, note, anchor="end", fill=INK, bold=True)
        picture.text((_LEFT + width) / 2, height - 6, tr("execution step"), anchor="middle")
        return str(picture)
