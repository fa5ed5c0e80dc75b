"""`lite prune`: zeros in weights or fewer channels, checked against the dense model."""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lite_messages import tr

from ..words import number
from ._base import Command, share
from ._compress import add_compression, check_samples, opened, within_budget
from ._table import table
from .evaluate import dataset_of

if TYPE_CHECKING:
    from ..pruning import Pruning

DEFAULT = 0.8


@dataclass
class PruneResult:
    """A written file and what is known about it."""

    path: Path
    found: Pruning

    def to_dict(self) -> dict[str, Any]:
        return {
            "file": str(self.path), "bytes": self.path.stat().st_size, **self.found.to_dict()
        }  # fmt: skip


def _configure(parser: argparse.ArgumentParser) -> None:
    add_compression(
        parser,
        max_drop=tr(
            "what the metric of --data may lose against the dense model: points, like 0.5%%, or "
            "0.5dB of PSNR; layers stay dense until it loses no more"
        ),
    )
    parser.add_argument(
        "--sparsity", type=share, metavar="SHARE",
        help=tr("share of zeros in the weights that are pruned (default without --channels: 0.8)"),
    )  # fmt: skip
    parser.add_argument(
        "--pattern", default="unstructured", metavar="HOW",
        help=tr("where zeros lie: unstructured, 1xN (N neighboring outputs share them), Nx1 (N "
                "neighboring inputs do; 4x1 suits int8) or N:M (N of each M inputs are kept; "
                "default: unstructured)"),
    )  # fmt: skip
    parser.add_argument(
        "--channels", type=share, metavar="SHARE",
        help=tr("remove this share of the channels, where the graph allows it"),
    )  # fmt: skip
    parser.add_argument(
        "--keep", default="", metavar="LAYER,A..B,…",
        help=tr("layers that stay as they are; A..B stands for all layers from A to B"),
    )  # fmt: skip
    parser.add_argument(
        "--also", type=_shares, default=(), metavar="SHARE,…",
        help=tr("also measure accuracy, latency and size at these shares; what is written has "
                "the share of --sparsity, or of --channels if that is given alone"),
    )  # fmt: skip
    parser.add_argument(
        "--measure", action=argparse.BooleanOptionalAction, default=True,
        help=tr("measure dense and sparse layers on this machine's CPU, and leave those dense that "
                "would not be faster (default: on)"),
    )  # fmt: skip


def _shares(text: str) -> list[float]:
    return [share(word) for word in text.split(",")]


def _call(args: argparse.Namespace) -> PruneResult:
    from lite_engine.prune import Pattern, PruneOptions

    from ..pruning import prune, require
    from ._first_look import say_first

    check_samples(args, tr("weights are solved again on samples of typical inputs"))
    sparsity = args.sparsity
    if sparsity is None and args.channels is None:
        sparsity = Pattern.parse(args.pattern).share or DEFAULT
    options = PruneOptions(sparsity, args.channels, args.pattern, limit=args.samples)
    model = opened(args)
    say_first(model, lambda: args.calibration or dataset_of(args), args)
    within = within_budget(model, args, float_budget=math.inf, version="pruned")
    source = within.calibrating if within and within.calibrating else args.calibration
    keep = [k for k in args.keep.split(",") if k]
    found, pruned = prune(
        model, source, options, keep=keep, measure=args.measure, within=within, also=args.also
    )
    if not args.force:
        require(found)
    return PruneResult(pruned.save(args.output), found)


def _show(result: PruneResult, args: argparse.Namespace) -> str:
    from ..pruning import speed_note

    found, made = result.found, result.found.made
    lines = []
    if made.layers:
        heads, rows = found.table()
        lines += [table(heads, rows, right=(1, 2, 3, 4)), ""]
    if made.channels:
        rows = [
            [c["name"], f"{c['before']} → {c['after']}", f"{1 - c['after'] / c['before']:.0%}"]
            for c in made.channels
        ]
        lines += [table([tr("layer"), tr("channels"), tr("removed")], rows, right=(2,)), ""]
    if made.whole_layers:
        rows = [[name, why] for name, why in made.whole_layers.items()]
        lines += [table([tr("layers that keep their channels"), tr("reason")], rows), ""]
    if made.dense_layers:
        rows = [[name, why] for name, why in made.dense_layers.items()]
        lines += [table([tr("layers that stay dense"), tr("reason")], rows), ""]
    if found.trade_off:
        heads, rows = found.trade_off.table()
        rows = [[n, f"{good:.1f}", f"{ms:.3f}", number(size, "B")] for n, good, ms, size in rows]
        lines += [table(heads, rows, right=(1, 2, 3)), ""]
        lines += [
            tr("no version with the share {share}: {why}", share=share, why=why)
            for share, why in found.trade_off.skipped.items()
        ]
    lines.append(
        tr("outputs have an SQNR of {db:.1f} dB against the dense model on {samples} samples"
           " (threshold {threshold:g} dB)",
           db=made.sqnr_db, samples=made.samples, threshold=made.options.threshold_db)
    )  # fmt: skip
    if not made.held_out:
        lines.append(
            tr("note: too few samples to hold any out: accuracy was measured on the calibration "
               "samples (5 samples are enough)")
        )  # fmt: skip
    if found.budget:
        lines.append(tr("labeled data: {facts}", facts=found.budget.sentence))
    if note := speed_note(found):
        lines.append(note)
    size = number(result.path.stat().st_size, "B")
    lines.append(tr("wrote {path} ({size})", path=result.path, size=size))
    return "\n".join(lines)


def _code(result: PruneResult, args: argparse.Namespace) -> int:
    """1 for a budget or threshold that was missed, though --force wrote the file."""
    budget = result.found.budget
    return int(not (budget.reached if budget else result.found.made.passed))


COMMAND = Command(
    "prune", _configure, _call, _show, code=_code, data=lambda result: result.to_dict()
)
