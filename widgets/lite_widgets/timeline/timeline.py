"""Timeline: one run over time, a track per thread, queue and backend."""

from __future__ import annotations

import html

import traitlets as t
from lite_messages import tr

from .._base import LiteWidget, Plain
from .._rows import row_value
from .._svg import INK, SOFT, TRACK, Picture, nice, on, ramp, tail

_LEFT, _TOP, _LANE, _BAR, _WIDTH = 110, 26, 28, 20, 760


class Timeline(LiteWidget):
    """When each layer ran and on what: gaps, copies, and threads that wait for each other.

    profile    data.Profile, for colours and tooltips.
    timeline   {"tracks": [{"name", "busy": its share of the run, "events": [{"name": the layer,
               "kind": "run", "copy" or "wait", "start_ms", "end_ms"}]}], "summary": one sentence}
    colour_by, hidden_types   as of LatencyChart.
    """

    profile = Plain(rows="layers", need=("layers",))
    timeline = Plain(need=("tracks",))
    colour_by = t.Enum(["time", "type", "backend", "precision", "gflops", "change"], "time")
    hidden_types = t.List(t.Unicode())

    def static_svg(self) -> str | None:
        """Return the whole run, labeled where there is room."""
        if not self.profile or not self.timeline or not self.timeline["tracks"]:
            return None
        tracks, rows = self.timeline["tracks"], self.profile["layers"]
        values = {row["name"]: row_value(row, False) for row in rows}
        most = max(values.values(), default=0) or 1
        whole = max((e["end_ms"] for track in tracks for e in track["events"]), default=0) or 1
        bottom = _TOP + len(tracks) * _LANE
        scale = (_WIDTH - _LEFT - 10) / whole
        picture = Picture(_WIDTH, bottom + 20, tr("Timeline of one run"))
        for i in range(5):
            x = _LEFT + i * nice(whole / 4) * scale
            if x <= _WIDTH - 10:
                picture.line(x, _TOP - 6, x, bottom)
                unit = " ms" if i == 0 else ""
                label = f"{i * nice(whole / 4):.3g}{unit}"
                picture.text(x, _TOP - 10, label, anchor="middle")
        for lane, track in enumerate(tracks):
            y = _TOP + lane * _LANE + 4
            picture.text(0, y + 14, tail(track["name"], 16), fill=INK)
            for event in track["events"]:
                x, wide = (
                    _LEFT + event["start_ms"] * scale,
                    (event["end_ms"] - event["start_ms"]) * scale,
                )
                if wide < 0.2:
                    continue
                if event["kind"] == "wait":
                    picture.rect(x, y + 6, wide, _BAR - 12, TRACK)
                    continue
                share = (values.get(event["name"], 0) / most) ** 0.5
                copy = event["kind"] == "copy"
                fill = "#ffffff" if copy else ramp("time", share)
                picture.rect(x, y, max(wide - 0.5, 0.4), _BAR, fill, stroke=SOFT, stroke_width=0.4)
                label = event["name"].split("/")[-1]
                if wide > 6.5 * len(label) + 6:
                    picture.text(x + 3, y + 14, label, fill=on(fill))
        picture.line(_LEFT, bottom, _WIDTH - 10, bottom, SOFT)
        return str(picture)

    def static_html(self) -> str:
        """Return what the run says of itself, and the run."""
        told = (self.timeline or {}).get("summary", "")
        return (f"<p>{html.escape(told)}</p>" if told else "") + super().static_html()
