"""Figures over time: what changed between two profiles, and the saved runs."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

from lite_messages import tr, trn

from ._template import BACKENDS, new_figure, plotly

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

Data = dict[str, Any]
#: Bars of a waterfall besides the totals.
MOST = 12


def waterfall(change: Data) -> Figure:
    """`ProfileChange.to_dict()`: from one total to the other. The largest changes have a bar each,
    the others one together; the axis does not begin at zero, so that small ones can be seen."""
    rows = change["changes"]
    names = [r["name"] for r in rows[:MOST]]
    deltas = [r["delta_ns"] / 1e6 for r in rows[:MOST]]
    if len(rows) > MOST:
        names.append(trn("{n} smaller change", "{n} smaller changes", len(rows) - MOST))
        deltas.append(sum(r["delta_ns"] for r in rows[MOST:]) / 1e6)
    before, after = change["before_ns"] / 1e6, change["after_ns"] / 1e6
    bars = plotly().Waterfall(
        x=["before", *names, "after"], y=[before, *deltas, after],
        measure=["absolute", *["relative"] * len(names), "total"],
        decreasing_marker_color="#0072b2", increasing_marker_color="#d55e00",
        totals_marker_color="#868e96", hovertemplate="%{x}: %{y:+.4f} ms<extra></extra>",
    )  # fmt: skip
    heights, at = [before, after], before
    for delta in deltas:
        at += delta
        heights.append(at)
    room = 0.15 * ((max(heights) - min(heights)) or max(heights) or 1)
    title = f"{change['baseline']} → {change['candidate']}"
    return new_figure([bars], title, "", "ms",
                      yaxis_range=[max(0.0, min(heights) - room), max(heights) + room])  # fmt: skip


def runs(rows: list[Data]) -> Figure:
    """Saved runs (`Run.to_dict()`, `at` in seconds since 1970): the median over time, a line per
    model, backend, precision, number of threads and device."""
    groups: dict[tuple[Any, ...], list[Data]] = {}
    for row in sorted(rows, key=lambda r: r["at"]):
        key = tuple(row[k] for k in ("model", "backend", "precision", "threads", "device"))
        groups.setdefault(key, []).append(row)
    lines = [
        plotly().Scatter(
            x=[datetime.datetime.fromtimestamp(r["at"]) for r in own],
            y=[r["median_ms"] for r in own], mode="lines+markers",
            name=tr(
                "{model} on {backend} ({precision}, {threads} threads, {device})",
                model=model, backend=backend, precision=precision, threads=threads, device=device,
            ),
            line_color=BACKENDS.get(backend) if len(groups) <= 3 else None,
            customdata=[[r["id"], r["tag"]] for r in own],
            hovertemplate="run %{customdata[0]} %{customdata[1]}<br>%{y:.4g} ms"
                          "<extra>%{fullData.name}</extra>",
        )
        for (model, backend, precision, threads, device), own in groups.items()
    ]  # fmt: skip
    return new_figure(lines, tr("Saved runs"), "", "ms", yaxis_rangemode="tozero")
