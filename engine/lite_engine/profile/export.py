"""A profile in other tools' forms: CSV, Chrome's trace viewer, Netron."""

from __future__ import annotations

import csv
import io
from typing import Any

from ..figures.timeline import tracks
from ..ir import format_shape
from ..terminal import printable
from .record import Profile

#: What a cell of a spreadsheet begins with that is computed.
_FORMULA = ("=", "+", "-", "@")


def layers_csv(profile: Profile) -> str:
    """Layers as CSV text, shapes as 1x3x224x224 (? where a size depends on data), several values
    separated by semicolons. An apostrophe comes before a text that a spreadsheet would compute."""
    out = io.StringIO()
    rows = profile.to_dict()["layers"]
    writer = csv.DictWriter(out, list(rows[0]) if rows else ["index"], lineterminator="\n")
    writer.writeheader()
    for row in rows:
        flat = dict(row)
        flat["sources"] = ";".join(row["sources"])
        for key in ("input_shapes", "output_shapes"):
            flat[key] = ";".join(_plain_shape(s) for s in row[key])
        for key in ("span_ms", "threads_ms"):
            flat[key] = ";".join(f"{t:.6f}" for t in row[key])
        flat["launches_ms"] = ";".join(
            "/".join(f"{t:.6f}" for t in launch) for launch in row["launches_ms"]
        )
        if row["copy"]:
            flat["copy"] = f"{row['copy']['source']} to {row['copy']['target']}"
        writer.writerow({key: _cell(value) for key, value in flat.items()})
    return out.getvalue()


def _cell(value: Any) -> Any:
    """Names come from the model: control characters as escapes, and no formula."""
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if text.lstrip().startswith(_FORMULA) else text


def _plain_shape(shape: list[int | None] | None) -> str:
    return format_shape(None if shape is None else tuple(shape)).replace("×", "x")


def chrome_trace(profile: Profile) -> dict[str, Any]:
    """The run nearest to the median in Chrome's trace format (Trace Event Format, JSON object form;
    ts and dur in µs): when each layer really ran, one row per thread, queue and backend, the whole
    run above them. What was compiled before the first run is a process of its own."""
    whole = max([x.span_ms[1] for x in profile.layers], default=0.0)
    rows = {"run": 0}
    events = [_event("run", "run", 0, 0.0, max(whole, profile.total_ms["median"]), {})]
    for track in tracks(profile.to_dict()):
        row = rows.setdefault(track.name, len(rows))
        for e in track.events:
            layer = profile.layers[e.layer]
            details: dict[str, Any] = {"layer": layer.name}
            if e.kind != "wait":
                details = {
                    "kernel": layer.kernel, "why": layer.why, "sources": layer.sources,
                    "outputs": layer.output_shapes, "gflops": layer.gflops,
                    "gbytes_per_s": layer.gbytes_per_s,
                }  # fmt: skip
            if e.queued_ms is not None:
                details["queued_ms"] = e.queued_ms
            shown = ("wait", "wait") if e.kind == "wait" else (layer.name, layer.op)
            events.append(_event(*shown, row, e.start_ms, e.end_ms - e.start_ms, details))
    if profile.compiled:
        before = {**_name("process_name", 0, "before the first run"), "pid": 2}
        events.append(before)
    for c in profile.compiled:
        took = _event(c.name, "compile", 0, c.start_ms, c.end_ms - c.start_ms, {})
        events.append({**took, "pid": 2})
    names = [_name("process_name", 0, f"{profile.model} on {profile.backend}")]
    for name, row in rows.items():
        order = {**_name("thread_sort_index", row, ""), "args": {"sort_index": row}}
        names += [_name("thread_name", row, name), order]
    return {
        "traceEvents": names + events,
        "displayTimeUnit": "ms",
        "otherData": {k: str(v) for k, v in profile.environment.items()},
    }


def _event(
    name: str, category: str, row: int, begin_ms: float, ms: float, args: dict[str, Any]
) -> dict[str, Any]:
    return {"name": name, "cat": category, "ph": "X", "pid": 1, "tid": row, "ts": begin_ms * 1e3,
            "dur": ms * 1e3, "args": args}  # fmt: skip


def _name(kind: str, row: int, name: str) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": 1, "tid": row, "args": {"name": name}}


def netron_attachment(profile: Profile) -> dict[str, Any]:
    """Numbers that Netron shows beside the nodes of the original file (drop the file on it).

    A kernel that several nodes became gives its numbers to the first of them and the names of
    the others; the others say where their time is.
    """
    metrics: list[dict[str, Any]] = []

    def say(node: str, name: str, value: Any, kind: str = "string") -> None:
        metrics.append({"kind": "node", "target": node, "name": name, "value": value, "type": kind})

    for layer in profile.layers:
        if not layer.sources:
            continue
        first, *others = layer.sources
        say(first, f"ms ({profile.backend})", round(layer.median_ms, 6), "float32")
        say(first, "share %", round(100 * layer.share, 3), "float32")
        say(first, "GFLOP/s", round(layer.gflops, 3), "float32")
        say(first, "kernel", layer.kernel)
        if others:
            say(first, "fused with", ", ".join(others))
        for node in others:
            say(node, f"ms ({profile.backend})", f"in {first}")
    return {"signature": "netron:attachment", "metrics": metrics}
