"""`lite runs`: profiles of the past; list, show, diff, tag."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

from ..words import plural
from ._base import Command, add_json, at_least, percent, wants_json_only, write_json
from ._table import clip, table


@dataclass
class Runs:
    """What was asked for: a list, one run with its profile, a difference, or a tagged run."""

    verb: str
    value: Any

    def to_dict(self) -> dict[str, Any]:
        if self.verb == "list":
            return {"runs": [r.to_dict() for r in self.value]}
        if self.verb == "diff":
            return self.value.to_dict()
        run, profile = self.value
        return {"run": run.to_dict(), "profile": profile.to_dict()}


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("verb", nargs="?", default="list", choices=("list", "show", "diff", "tag"))
    parser.add_argument("names", nargs="*", metavar="RUN", help="a number, or a tag")
    parser.add_argument("--model", metavar="NAME", help="only this model's runs")
    parser.add_argument(
        "--fail-above", type=percent, metavar="P",
        help="with diff: exit code 1 when the second run takes over P %% longer or, emulated, "
        "executes over P %% more instructions",
    )  # fmt: skip
    parser.add_argument(
        "--limit", type=at_least(1), default=50, metavar="N", help="newest runs (50)"
    )
    add_json(parser)


def _call(args: argparse.Namespace) -> Runs:
    from lite_engine.errors import UsageError
    from lite_engine.history import History
    from lite_engine.history.changes import changes

    needs = {"list": 0, "show": 1, "diff": 2, "tag": 2}[args.verb]
    if len(args.names) != needs:
        what = {0: "no names", 1: "one run", 2: "two names"}[needs]
        example = {"list": "", "show": " 12", "diff": " 12 15", "tag": " 12 before"}[args.verb]
        raise UsageError(f"`lite runs {args.verb}{example}` takes {what}, got {len(args.names)}")
    if args.fail_above is not None and args.verb != "diff":
        raise UsageError("--fail-above judges a difference: `lite runs diff 12 15 --fail-above 5`")
    history = History()
    if args.verb == "list":
        return Runs("list", history.list(args.model, args.limit))
    if args.verb == "diff":
        (_, before), (_, after) = (history.get(name) for name in args.names)
        return Runs("diff", changes(before, after))
    if args.verb == "tag":
        run, _ = history.get(args.names[0])
        history.tag(run.id, args.names[1])
    return Runs(args.verb, history.get(args.names[0]))


def _show(result: Runs, args: argparse.Namespace) -> str:
    if args.json:
        write_json(result.to_dict(), args.json)
        if wants_json_only(args):
            return ""
    shown = {"list": _list, "show": _profile, "diff": diff_text, "tag": _profile}
    text = shown[result.verb](result.value)
    if args.fail_above is None:
        return text
    grown = result.value.growth_percent
    verdict = "over" if grown > args.fail_above else "within"
    return f"{text}\n{grown:+.1f} %: {verdict} the {args.fail_above:g} % that were asked for"


def _code(result: Runs, args: argparse.Namespace) -> int:
    return int(args.fail_above is not None and result.value.growth_percent > args.fail_above)


def _list(runs: Any) -> str:
    rows = [
        [r.id, r.when, clip(r.model, 32), r.backend, r.precision, r.threads, r.device,
         "–" if r.device.startswith("emulated") else f"{r.median_ms:.3f}", r.tag]
        for r in runs
    ]  # fmt: skip
    if not rows:
        return "no runs are kept yet; `lite profile MODEL` keeps one"
    head = ["run", "when", "model", "backend", "precision", "threads", "device", "ms", "tag"]
    return table(head, rows, right=(0, 5, 7))


def _profile(value: Any) -> str:
    run, profile = value
    rows = [
        [x.index, clip(x.name, 40), x.op, f"{x.median_ms:.3f}", f"{100 * x.share:.1f}", x.kernel]
        for x in profile.slowest(20)
    ]
    head = ["#", "layer", "op", "ms", "%", "kernel"]
    tag = f" [{run.tag}]" if run.tag else ""
    return "\n".join(
        [
            f"run {run.id}{tag}: {run.model} on {run.backend} ({run.precision}, "
            f"{plural(run.threads, 'thread')}, {run.machine}), {run.when}: "
            f"median {run.median_ms:.3f} ms; slowest layers",
            table(head, rows, right=(0, 3, 4)),
        ]
    )


def diff_text(change: Any) -> str:
    """The waterfall as a table: total, changes by contribution, total."""
    if change.instructions is not None:
        return _counts_text(change)
    rows = [["", change.a, "", "", f"{change.before_ns / 1e6:.6f}", ""]]
    for c in change.changes[:20]:
        pair = f"{c.before_ns / 1e6:.3f} → {c.after_ns / 1e6:.3f}"
        rows.append([c.kind, clip(c.name, 48), pair, f"{c.delta_ns / 1e6:+.6f}", "",
                     clip(" / ".join(c.kernels), 60)])  # fmt: skip
    rest = change.changes[20:]
    if rest:
        delta = sum(c.delta_ns for c in rest)
        rows.append(["", f"{len(rest)} smaller changes", "", f"{delta / 1e6:+.6f}", "", ""])
    rows.append(["", change.b, "", "", f"{change.after_ns / 1e6:.6f}", ""])
    head = ["", "layers", "ms", "change ms", "total ms", "kernels"]
    told = [f"warning: {w}" for w in change.warnings]
    return "\n".join([table(head, rows, right=(2, 3, 4)), *told])


def _counts_text(change: Any) -> str:
    """The same in executed instructions, where times mean nothing."""
    rows = [["", change.a, "", f"{change.instructions[0]:,}", ""]]
    counted = [c for c in change.changes if c.instructions is not None]
    layers = [c for c in counted if c.instructions[0] != c.instructions[1]]
    for c in layers[:20]:
        old, new = c.instructions
        rows.append([c.kind, clip(c.name, 48), f"{new - old:+,}", f"{old:,} → {new:,}",
                     clip(" / ".join(c.kernels), 60)])  # fmt: skip
    if layers[20:]:
        delta = sum(c.instructions[1] - c.instructions[0] for c in layers[20:])
        rows.append(["", f"{len(layers) - 20} smaller changes", f"{delta:+,}", "", ""])
    rows.append(["", change.b, "", f"{change.instructions[1]:,}", ""])
    head = ["", "layers", "change", "executed instructions", "kernels"]
    told = [f"warning: {w}" for w in change.warnings]
    return "\n".join([table(head, rows, right=(2, 3)), *told])


COMMAND = Command("runs", _configure, _call, _show, _code)
