"""Figures of a profile: latency, roofline, types, memory, timeline.

`profile` is `Profile.to_dict()`; times are in ms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lite_messages import tr

from ..errors import UsageError
from ._template import BACKENDS, COLOURS, choose, new_figure, plotly
from .timeline import Event, Track, tracks

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

Data = dict[str, Any]


def figure(profile: Data, kind: str) -> Figure:
    """A plotly Figure. Raises UsageError for an unknown kind, and for one that the profile has no
    data for."""
    return choose(kind, KINDS)(profile)


def _latency(profile: Data) -> Figure:
    """A bar per layer in the order of the model, with the 95 % interval of its median."""
    emulated = not profile["times_meaningful"]
    bars = []
    for backend, rows in _by_backend(profile["layers"]).items():
        bars.append(
            plotly().Bar(
                x=[r["index"] for r in rows], y=[_cost(r, emulated) for r in rows], name=backend,
                marker_color=BACKENDS.get(backend), customdata=[r["name"] for r in rows],
                error_y=None if emulated else
                {"array": [r["ci_ms"] or 0 for r in rows], "thickness": 1, "width": 0},
                hovertext=[_hover(r) for r in rows], hovertemplate="%{hovertext}<extra></extra>",
            )
        )  # fmt: skip
    unit = tr("executed instructions") if emulated else "ms"
    return new_figure(bars, _title(profile), "layer", unit, barmode="overlay")


def _roofline(profile: Data) -> Figure:
    """Performance against arithmetic intensity, both logarithmic; area is the share of the time.
    S. Williams, A. Waterman, D. Patterson: Roofline. CACM 52(4), 2009."""
    _needs_times(profile)
    go, rows = plotly(), [r for r in profile["layers"] if r["flops"] and r["bytes"] and r["gflops"]]
    intensity = [r["flops"] / r["bytes"] for r in rows]
    most = max((r["share"] for r in rows), default=1) or 1
    dots = go.Scatter(
        x=intensity, y=[r["gflops"] for r in rows], mode="markers", name="layers",
        marker={"size": [60 * r["share"] / most for r in rows], "sizemode": "area", "sizemin": 3,
                "sizeref": 0.1, "color": COLOURS[0], "opacity": 0.7},
        customdata=[r["name"] for r in rows], hovertext=[_hover(r) for r in rows],
        hovertemplate="%{hovertext}<extra></extra>",
    )  # fmt: skip
    roof, lines = profile["roofline"], []
    if roof and rows:
        rates = [("memory", roof["gbytes_per_s"], "solid"),
                 ("cache", roof.get("cache_gbytes_per_s"), "dot")]  # fmt: skip
        for what, rate, dash in rates:
            if rate:
                ridge = roof["gflops"] / rate
                ends = [min(*intensity, ridge) / 2, ridge, max(*intensity, ridge) * 2]
                lines.append(
                    go.Scatter(
                        x=ends, y=[min(roof["gflops"], x * rate) for x in ends], mode="lines",
                        name=f"{what}, {rate:.3g} GB/s", hoverinfo="skip",
                        line={"color": COLOURS[-1], "dash": dash},
                    )
                )  # fmt: skip
    return new_figure(
        [*lines, dots], _title(profile), tr("FLOP per byte"), "GFLOP/s", xaxis_type="log",
        yaxis_type="log",
    )  # fmt: skip


def _types(profile: Data) -> Figure:
    """Time by operator, the largest on top."""
    emulated = not profile["times_meaningful"]
    sums: dict[str, float] = {}
    for row in profile["layers"]:
        sums[row["op"]] = sums.get(row["op"], 0) + _cost(row, emulated)
    order = sorted(sums, key=lambda op: sums[op])
    bar = plotly().Bar(
        x=[sums[op] for op in order], y=order, orientation="h",
        text=[f"{100 * sums[op] / (sum(sums.values()) or 1):.1f} %" for op in order],
        hovertemplate="%{y}: %{x:.4g}<extra></extra>",
    )  # fmt: skip
    return new_figure([bar], _title(profile), tr("executed instructions") if emulated else "ms", "")


def _memory(profile: Data) -> Figure:
    """Which bytes of the arena hold which tensor, from the step that writes it to the last that
    reads it."""
    tensors = profile["memory_map"].get("tensors") or []
    if not tensors:
        raise UsageError(tr("the profile has no memory map"))
    bars = plotly().Bar(
        x=[(t["first"] + t["last"]) / 2 for t in tensors], y=[t["bytes"] for t in tensors],
        base=[t["offset"] for t in tensors],
        width=[t["last"] - t["first"] + 0.9 for t in tensors],
        customdata=[t["name"] for t in tensors],
        hovertemplate=tr(
            "{tensor}: {size} bytes at {offset}",
            tensor="%{customdata}", size="%{y}", offset="%{base}",
        ) + "<extra></extra>",
        marker={"color": [COLOURS[i % 6] for i in range(len(tensors))], "line_width": 0},
    )  # fmt: skip
    return new_figure(
        [bars], _title(profile), tr("step"), tr("bytes of the arena"), barmode="overlay"
    )


def _timeline(profile: Data) -> Figure:
    """A typical run: a track per thread, queue and backend; copies hatched, waiting pale."""
    _needs_times(profile)
    rows, bars = profile["layers"], []
    for track in tracks(profile):
        for kind in ("run", "copy", "wait"):
            own = [e for e in track.events if e.kind == kind]
            if own:
                bars.append(_events(track, own, rows))
    return new_figure(bars, _title(profile), "ms", "", barmode="overlay")


def _events(track: Track, events: list[Event], rows: list[Data]) -> Any:
    """One kind of a track's events."""
    kind = events[0].kind
    shown = tr("waits for the other threads") if kind == "wait" else kind
    return plotly().Bar(
        x=[e.end_ms - e.start_ms for e in events], base=[e.start_ms for e in events],
        y=[track.name] * len(events), orientation="h", name=f"{track.name}: {shown}",
        marker={"color": BACKENDS.get(track.backend), "line_width": 1,
                "pattern_shape": "/" if kind == "copy" else ""},
        opacity=0.25 if kind == "wait" else 1.0, customdata=[e.name for e in events],
        hovertext=[shown if kind == "wait" else _hover(rows[e.layer]) for e in events],
        hovertemplate="%{hovertext}<extra></extra>",
    )  # fmt: skip


KINDS = {"latency": _latency, "roofline": _roofline, "types": _types, "memory": _memory,
         "timeline": _timeline}  # fmt: skip


def _needs_times(profile: Data) -> None:
    if not profile["times_meaningful"]:
        raise UsageError(
            tr("emulated runs have no meaningful times"),
            fix=tr('use figure("latency") or ("types")'),
        )


def _by_backend(layers: list[Data]) -> dict[str, list[Data]]:
    out: dict[str, list[Data]] = {}
    for row in layers:
        out.setdefault(row["backend"], []).append(row)
    return out


def _cost(row: Data, emulated: bool) -> float:
    return float((row["instructions"] or 0) if emulated else row["median_ms"])


def _hover(row: Data) -> str:
    interval = f" ± {row['ci_ms']:.4f}" if row["ci_ms"] else ""
    return (
        f"<b>{row['name']}</b> {row['op']}<br>{row['median_ms']:.4f}{interval} ms, "
        f"{100 * row['share']:.1f} %<br>{row['kernel']}<br>{row['why']}"
    )


def _title(profile: Data) -> str:
    total = f", {profile['total_ms']['median']:.3g} ms" if profile["times_meaningful"] else ""
    return tr(
        "{model} on {backend} ({precision}){total}",
        model=profile["model"], backend=profile["backend"], precision=profile["precision"],
        total=total,
    )  # fmt: skip
