"""`lite profile`: a table of layers, where the time goes."""

from __future__ import annotations

import argparse
import csv
import io
import json
from typing import Any

from ._base import (
    Command,
    add_backend,
    add_json,
    add_model,
    load_model,
    wants_json_only,
    write_json,
    write_text,
)
from ._table import clip, shape_text, table


def _configure(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument("--input", action="append", default=[], metavar="[NAME=]FILE")
    add_backend(parser)
    parser.add_argument("--runs", type=int, default=20, metavar="N", help="timed runs (20)")
    parser.add_argument("--warmup", type=int, default=3, metavar="N", help="runs before (3)")
    parser.add_argument("--device", default="local", help="local, emulated, ssh://… or adb://…")
    parser.add_argument("--sort", choices=("order", "time"), default="order")
    parser.add_argument("--csv", metavar="FILE", help="layers as comma-separated values")
    parser.add_argument("--trace", metavar="FILE", help="Chrome trace of one run")
    add_json(parser)


def _call(args: argparse.Namespace) -> Any:
    from lite_engine.errors import UsageError
    from lite_engine.runtime import Predictor
    from lite_engine.runtime.inputs import random_feeds, read_feeds
    from lite_engine.runtime.profile import profile

    if args.runs < 1:
        raise UsageError("--runs must be at least 1")
    model = load_model(args)
    feeds = read_feeds(model, args.input) if args.input else random_feeds(model.graph)
    predictor = Predictor(model, args.backend, threads=args.threads, precision=args.precision)
    return profile(predictor, feeds, runs=args.runs, warmup=args.warmup)


def layers_csv(result: Any) -> str:
    """Layers as CSV text, shapes as 1x3x224x224."""
    out = io.StringIO()
    rows = result.to_dict()["layers"]
    writer = csv.DictWriter(out, list(rows[0]) if rows else ["index"], lineterminator="\n")
    writer.writeheader()
    for row in rows:
        flat = {k: ";".join(map(str, v)) if k == "sources" else v for k, v in row.items()}
        for key in ("input_shapes", "output_shapes"):
            flat[key] = ";".join("x".join(map(str, s)) for s in row[key])
        writer.writerow(flat)
    return out.getvalue()


def chrome_trace(result: Any) -> dict[str, Any]:
    """One run in Chrome's trace format: layers laid end to end with their median times."""
    events, at = [], 0.0
    for layer in result.layers:
        events.append(
            {
                "name": layer.name,
                "cat": layer.op,
                "ph": "X",
                "pid": 1,
                "tid": layer.backend,
                "ts": at * 1e3,
                "dur": layer.median_ms * 1e3,
                "args": {"kernel": layer.kernel, "why": layer.why, "sources": layer.sources},
            }
        )
        at += layer.median_ms
    return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": result.environment}


def _show(result: Any, args: argparse.Namespace) -> str:
    if args.csv:
        write_text(args.csv, layers_csv(result))
    if args.trace:
        write_text(args.trace, json.dumps(chrome_trace(result)))
    if args.json:
        write_json(result.to_dict(), args.json)
        if wants_json_only(args):
            return ""
    layers = result.layers if args.sort == "order" else result.slowest(len(result.layers))
    rows = [
        [
            x.index,
            clip(x.name, 36),
            x.op,
            f"{x.median_ms:.3f}",
            f"±{x.ci95_ms:.3f}",
            f"{100 * x.share:.1f}",
            f"{x.gflops:.1f}",
            f"{x.gbytes_per_s:.1f}",
            shape_text(x.output_shapes[0] if x.output_shapes else None),
            x.kernel,
            clip(x.why, 44),
            clip(" + ".join(x.sources), 44),
        ]
        for x in layers
    ]
    head = [
        "#",
        "layer",
        "op",
        "ms",
        "95 %",
        "%",
        "GFLOP/s",
        "GB/s",
        "output",
        "kernel",
        "why",
        "from",
    ]
    total = result.total_ms
    lines = [
        table(head, rows, right=(0, 3, 4, 5, 6, 7)),
        "",
        f"{result.model} on {result.backend} ({result.precision}, {result.threads} threads, "
        f"{result.environment['cpu']}): median {total['median']:.3f} ms, min {total['min']:.3f}, "
        f"p90 {total['p90']:.3f} over {result.runs} runs; first run {result.first_run_ms:.1f} ms",
        f"layers add up to {result.sum_ms:.3f} ms, {result.unexplained_ms:+.3f} ms outside them; "
        f"reading the clocks out takes {result.overhead_ms:.3f} ms and is not in the total",
    ]
    if not result.times_meaningful:
        lines.append("emulated: times are not meaningful")
    lines += [f"warning: {w}" for w in result.warnings]
    lines += [f"wrote {p}" for p in (args.csv, args.trace, args.json) if p]
    return "\n".join(lines)


COMMAND = Command("profile", "per-layer times", _configure, _call, _show)
