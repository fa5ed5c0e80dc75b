"""Figures of a comparison: the error of each layer, and of one layer its histogram and channels.

`comparison` is `Comparison.to_dict()`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from lite_messages import tr

from ..errors import UsageError
from ._template import BAD, COLOURS, FINE, choose, new_figure, plotly

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

Data = dict[str, Any]


def figure(comparison: Data, kind: str, layer: str | None = None) -> Figure:
    """A plotly Figure; `layer` is one that was compared with `detail` (default: the first such).
    Raises UsageError for an unknown kind or layer, and for a layer without detail."""
    make = choose(kind, KINDS)
    return make(comparison) if make is _error else make(comparison, _detailed(comparison, layer))


def _error(comparison: Data) -> Figure:
    """Isolated and accumulated relative L2 error of each layer, and its tolerance."""
    go, rows = plotly(), comparison["layers"]
    names = [r["name"] for r in rows]
    own = [r for r in rows if r["isolated"]]
    hover = "%{customdata}<br>%{y:.2e}<extra>%{fullData.name}</extra>"
    traces = [
        go.Scatter(x=[r["index"] for r in rows], y=[r["rel_l2"] for r in rows], name="accumulated",
                   mode="lines+markers", marker={"symbol": "circle-open"}, line_color=FINE,
                   customdata=names, hovertemplate=hover),
        go.Scatter(x=[r["index"] for r in own], y=[r["isolated"]["rel_l2"] for r in own],
                   name="isolated", mode="markers", customdata=[r["name"] for r in own],
                   marker={"color": [BAD if not r["within"] else COLOURS[0] for r in own],
                           "symbol": ["diamond" if not r["within"] else "circle" for r in own]},
                   hovertemplate=hover),
        go.Scatter(x=[r["index"] for r in rows], y=[r["tolerance"] for r in rows],
                   name="tolerance", mode="lines", line={"dash": "dot", "color": BAD},
                   hoverinfo="skip"),
    ]  # fmt: skip
    return new_figure(traces, comparison["verdict"], tr("layer"), tr("relative L2 error"),
                      yaxis={"type": "log", "exponentformat": "power"})  # fmt: skip


def _histogram(comparison: Data, row: Data) -> Figure:
    """How many elements differ by how much."""
    found = row["detail"]["histogram"]
    edges, counts = found["edges_log10"], found["counts"]
    bars = plotly().Bar(
        x=[(low + high) / 2 for low, high in pairwise(edges)], y=counts,
        width=[high - low for low, high in pairwise(edges)],
        hovertemplate=tr("{count} elements near 1e{power}", count="%{y}", power="%{x:.1f}")
        + "<extra></extra>",
    )  # fmt: skip
    return new_figure(
        [bars], _title(row, comparison),
        tr("log10 of the absolute difference"), tr("elements"),
    )  # fmt: skip


def _channels(comparison: Data, row: Data) -> Figure:
    """The largest difference of each channel."""
    found = row["detail"]["per_channel"]
    bars = plotly().Bar(
        x=list(range(len(found))), y=found,
        hovertemplate="channel %{x}: %{y:.2e}<extra></extra>",
    )  # fmt: skip
    return new_figure(
        [bars], _title(row, comparison),
        tr("channel"), tr("largest absolute difference"),
    )  # fmt: skip


KINDS: dict[str, Callable[..., Any]] = {
    "error": _error,
    "histogram": _histogram,
    "channels": _channels,
}


def _detailed(comparison: Data, layer: str | None) -> Data:
    rows: list[Data] = comparison["layers"]
    found = next((r for r in rows if r["detail"] and layer in (None, r["name"])), None)
    if found is None:
        raise UsageError(
            tr("{layer} was compared in detail", layer=layer or tr("no layer")),
            fix=tr("compare with detail=[{layer!r}]", layer=layer or rows[0]["name"]),
        )
    return found


def _title(row: Data, comparison: Data) -> str:
    return tr(
        "{layer}: {baseline} against {candidate}",
        layer=row["name"], baseline=comparison["baseline"], candidate=comparison["candidate"],
    )  # fmt: skip
