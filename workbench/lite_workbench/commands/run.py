"""`lite run`: one inference."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from lite_engine.errors import LiteError, UsageError

from ._base import (
    Command,
    add_backend,
    add_device,
    add_json,
    add_model,
    load_model,
    wants_json_only,
    write_json,
)
from ._table import table


@dataclass
class RunResult:
    """Outputs of one inference, taps among them, and the best labels when the model classifies."""

    model: str
    backend: str
    explanation: str
    outputs: dict[str, np.ndarray]
    taps: dict[str, np.ndarray] = field(default_factory=dict)
    top: list[tuple[int, str, float]] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "backend": self.backend,
            "outputs": {k: statistics(v) for k, v in self.outputs.items()},
            "taps": {k: statistics(v) for k, v in self.taps.items()},
            "top": [{"index": i, "label": n, "score": s} for i, n, s in self.top],
        }

    def __getitem__(self, name: str) -> np.ndarray:
        return self.outputs[name]


def statistics(array: np.ndarray) -> dict[str, Any]:
    """Shape, type, range and count of values that are not finite."""
    out: dict[str, Any] = {"shape": list(array.shape), "dtype": str(array.dtype)}
    if array.size and array.dtype.kind in "iuf":
        finite = array[np.isfinite(array)]
        out["not_finite"] = int(array.size - finite.size)
        if finite.size:
            out.update(
                min=float(finite.min()),
                max=float(finite.max()),
                mean=float(finite.mean(dtype=np.float64)),
                std=float(finite.std(dtype=np.float64)),
            )
    return out


def _configure(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="[NAME=]FILE",
        help="a .npy, .npz or image file; random numbers when none is given",
    )
    add_backend(parser)
    add_device(parser)
    parser.add_argument(
        "--tune", action="store_true", help="measures the usable backends and takes the fastest"
    )
    parser.add_argument("--output", metavar="FILE.npz", help="writes the outputs (and taps)")
    parser.add_argument("--labels", metavar="FILE", help="one label per line")
    parser.add_argument("--top", type=int, default=5, metavar="N", help="labels to show (5)")
    parser.add_argument(
        "--tap", action="append", default=[], metavar="NAME", help="inner value to keep"
    )
    parser.add_argument("--tap-stats", action="store_true", help="shows statistics of the taps")
    parser.add_argument("-v", "--verbose", action="store_true", help="says why this backend")
    add_json(parser)


def _call(args: argparse.Namespace) -> RunResult:
    from lite_engine.devices import find_device
    from lite_engine.runtime import Predictor
    from lite_engine.runtime.inputs import random_feeds, read_feeds
    from lite_engine.runtime.tune import fastest

    model = load_model(args)
    feeds = read_feeds(model, args.input) if args.input else random_feeds(model.graph)
    options = {"threads": args.threads, "precision": args.precision}
    if args.tune:
        if args.backend != "auto" or args.device != "local":
            raise UsageError("--tune picks the backend here; leave out --backend and --device")
        predictor = fastest(model, feeds, **options)
    else:
        predictor = Predictor(model, args.backend, device=find_device(args.device), **options)
    values = predictor.run(feeds, taps=args.tap)
    outputs = {n: values[n] for n in predictor.output_names}
    taps = {n: values[n] for n in args.tap}
    labels = _labels(args.labels) or list(model.metadata.get("labels", ()))
    result = RunResult(
        model.name,
        predictor.backend,
        predictor.explain(),
        outputs,
        taps,
        top_labels(outputs, labels, args.top) if args.input else [],
    )
    if args.output:
        _save(args.output, {**outputs, **taps})
    return result


def _labels(path: str | None) -> list[str]:
    if path is None:
        return []
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: labels cannot be read ({error})") from None


def top_labels(
    outputs: dict[str, np.ndarray], labels: list[str], count: int
) -> list[tuple[int, str, float]]:
    """The best scores when the model has one output that looks like a classifier's, else
    nothing."""
    if len(outputs) != 1:
        return []
    scores = np.squeeze(next(iter(outputs.values())))
    if scores.ndim != 1 or not scores.size >= 2 or (labels and len(labels) < scores.size):
        return []
    best = np.argsort(-scores.astype(np.float64), kind="stable")[:count]
    return [(int(i), labels[i] if labels else "", float(scores[i])) for i in best]


def _save(path: str, arrays: dict[str, np.ndarray]) -> None:
    try:
        with Path(path).open("wb") as file:
            np.savez(file, **arrays)
    except OSError as error:
        Path(path).unlink(missing_ok=True)
        raise LiteError(f"{path}: cannot be written ({error.strerror})") from None


def _show(result: RunResult, args: argparse.Namespace) -> str:
    if args.json:
        write_json(result.to_dict(), args.json)
        if wants_json_only(args):
            return ""
    lines = [result.explanation if args.verbose else f"{result.model} on {result.backend}"]
    shown = {**result.outputs, **(result.taps if args.tap_stats else {})}
    rows = []
    for name, array in shown.items():
        s = statistics(array)
        number = [f"{s[k]:.4g}" if k in s else "–" for k in ("min", "max", "mean")]
        rows.append(
            [
                name,
                f"{s['dtype']} {'×'.join(map(str, s['shape'])) or 'scalar'}",
                *number,
                s.get("not_finite", "–"),
            ]
        )
    lines.append(
        table(["value", "type", "min", "max", "mean", "not finite"], rows, right=(2, 3, 4, 5))
    )
    if result.top:
        lines += [
            "",
            table(
                ["#", "label", "score"],
                [[i, n, f"{s:.4f}"] for i, n, s in result.top],
                right=(0, 2),
            ),
        ]
    if args.output:
        lines.append(f"wrote {args.output}")
    return "\n".join(lines)


COMMAND = Command("run", "one inference", _configure, _call, _show)
