"""RangePlot: the values of one layer, where clipping cuts them, and its weight ranges."""

from __future__ import annotations

from lite_messages import tr

from .._base import LiteWidget, Plain
from .._svg import ACCENT, BAD, SOFT, Picture

_LEFT, _SIZE = 48, (480, 170)


class RangePlot(LiteWidget):
    """Histogram with the clipping line; clipped values are coloured.

    layer   {"name", "kept": in float?, "cost": points of accuracy alone, or None,
             "low", "high": ends of the histogram, "counts": [int],
             "clip_low", "clip_high": the chosen range, "method": "kl",
             "weights": [[low, high] per output channel] or None}
    """

    layer = Plain(need=("name", "low", "high", "counts", "clip_high"))

    def static_svg(self) -> str | None:
        """Return histogram and clipping lines."""
        if not self.layer:
            return None
        import math

        width, height = _SIZE
        low, high, counts = self.layer["low"], self.layer["high"], self.layer["counts"]
        top, bottom, right = 24, height - 30, width - 10
        most = math.log10(max([*counts, 1])) + 0.3
        step = (right - _LEFT) / max(len(counts), 1)
        picture = Picture(width, height, tr("Values of {layer}", layer=self.layer["name"]))
        clips = (self.layer.get("clip_low"), self.layer["clip_high"])
        for i, count in enumerate(counts):
            if not count:
                continue
            value = low + (high - low) * (i + 0.5) / len(counts)
            out = value > clips[1] or (clips[0] is not None and value < clips[0])
            tall = (bottom - top) * (math.log10(count) + 0.08) / most
            picture.rect(_LEFT + i * step, bottom - tall, step - 1, tall, BAD if out else SOFT)
        for clip in clips:
            if clip is not None and low <= clip <= high:
                x = _LEFT + (right - _LEFT) * (clip - low) / ((high - low) or 1)
                picture.line(x, top - 6, x, bottom, ACCENT, stroke_width=1.5)
        note = tr(
            "{layer}: {method} clips at {clips:.3g}",
            layer=self.layer["name"],
            method=self.layer.get("method", ""),
            clips=clips[1],
        )
        picture.text(_LEFT, 12, note, fill=ACCENT, bold=True)
        picture.text(_LEFT, bottom + 14, f"{low:.3g}")
        picture.text(right, bottom + 14, f"{high:.3g}", anchor="end")
        return str(picture)
