"""Figures of a `Quantization`: versions, layers that lose accuracy, and the range of a layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lite_engine.errors import UsageError
from lite_engine.figures import choose, new_figure, plotly
from lite_messages import tr

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


def quantization_figure(made: Any, kind: str, layer: str | None = None) -> Figure:
    """A plotly Figure. Raises UsageError for an unknown kind or layer, or before `explore`."""
    draw = choose(kind, KINDS)
    if draw is _ranges:
        return _ranges(made, layer)
    if not made.points:
        raise UsageError(
            tr("the versions are not measured yet"), fix=tr("call session.explore() first")
        )
    return draw(made)


def _trade_off(made: Any) -> Figure:
    return trade_off_figure(
        made.headline, made.method, made.points, made.float_point, made.accuracy_name
    )


def trade_off_figure(
    title: str, method: str, points: list[dict[str, Any]], dense: dict[str, Any], metric: str
) -> Figure:
    """Accuracy against latency with its interval; the area is the size of the file."""
    most = max(p["bytes"] for p in [dense, *points])
    traces = [
        plotly().Scatter(
            x=[p["latency_ms"] for p in own], y=[p["accuracy"] for p in own], name=name,
            mode="markers", error_x={"array": [p.get("latency_ci_ms") or 0 for p in own]},
            marker={"size": [40 * p["bytes"] / most for p in own], "sizemode": "area",
                    "sizeref": 0.1, "sizemin": 4},
            customdata=[[_said(p), p["bytes"]] for p in own],
            hovertemplate="%{y:.1f} %, %{x:.3g} ms, "
            + tr("{size} bytes", size="%{customdata[1]}") + "<br>"
            + "%{customdata[0]}<extra></extra>",
        )
        for name, own in ((method, points), ("float", [dense]))
    ]  # fmt: skip
    return new_figure(traces, title, "ms", f"{metric}, %")


def _said(point: dict[str, Any]) -> str:
    """What a version is."""
    if "label" in point:
        return str(point["label"])
    kept = point.get("kept", "all")
    return tr("in float: {layers}", layers=kept if kept == "all" else ", ".join(kept))


def _sensitivity(made: Any) -> Figure:
    """Error of the outputs when only this layer is int8, the largest on top."""
    rows = made.layers[::-1]
    bars = plotly().Bar(
        x=[r["cost"] for r in rows], y=[r["name"] for r in rows], orientation="h",
        hovertemplate="%{y}: %{x:.3g} %<extra></extra>",
    )  # fmt: skip
    return new_figure([bars], made.headline, tr("relative error of the outputs, %"), "")


def _ranges(made: Any, layer: str | None = None) -> Figure:
    """How often a layer gave which value, and the range that int8 keeps."""
    found = made.made.calibration.statistics
    node = next(
        (n for n in made.made.parent.nodes
         if layer in (None, n.name) and found.get(n.output.name)), None,
    )  # fmt: skip
    if node is None:
        raise UsageError(tr("layer {layer!r} was not calibrated", layer=layer))
    statistics, kept = found[node.output.name], made.made.finished().ranges.values
    bars = plotly().Bar(
        x=list(map(float, statistics.centres)), y=list(map(int, statistics.counts)),
        hovertemplate=tr("{count} values near {value}", count="%{y}", value="%{x:.3g}")
        + "<extra></extra>",
    )  # fmt: skip
    figure = new_figure([bars], f"{node.name} ({made.method})", "value", "elements",
                        yaxis_type="log")  # fmt: skip
    for limit in kept.get(node.output.name, ()):
        figure.add_vline(x=float(limit), line_dash="dot", line_color="#d55e00")
    return figure


KINDS = {"trade_off": _trade_off, "sensitivity": _sensitivity, "ranges": _ranges}
