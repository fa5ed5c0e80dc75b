"""`lite runs`: profiles, evaluations and sweeps of the past; list, show, diff, tag."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lite_messages import tr, trn

from ._base import Command, at_least, percent
from ._table import clip, table

if TYPE_CHECKING:
    from lite_engine.history._history import Run
    from lite_engine.history.changes import ProfileChange
    from lite_engine.profile import Profile


@dataclass
class Listed:
    """Runs, newest first."""

    runs: list[Run]

    def to_dict(self) -> dict[str, Any]:
        return {"runs": [r.to_dict() for r in self.runs]}


@dataclass
class Saved:
    """An evaluation or a sweep of the past, as plain data."""

    run: Run
    document: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        return {"run": self.run.to_dict(), "document": self.document}


@dataclass
class Shown:
    """One run with its profile."""

    run: Run
    profile: Profile

    def to_dict(self) -> dict[str, Any]:
        return {"run": self.run.to_dict(), "profile": self.profile.to_dict()}


if TYPE_CHECKING:
    Answer = Listed | Shown | Saved | ProfileChange
#: Kinds of saved runs.
KINDS = ("profile", "evaluation", "sweep")


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "verb",
        nargs="?",
        default="list",
        choices=("list", "show", "diff", "tag"),
        help=tr("what to do with saved runs (default: list)"),
    )
    parser.add_argument(
        "names", nargs="*", metavar="RUN", help=tr("the number of a run, or its tag")
    )
    parser.add_argument("--model", metavar="NAME", help=tr("only runs of this model"))
    parser.add_argument("--device", metavar="D", help=tr("only runs on this device"))
    parser.add_argument(
        "--metric", metavar="NAME", help=tr("only runs with this metric, like top-1")
    )
    parser.add_argument("--kind", choices=KINDS, help=tr("only runs of this kind"))
    parser.add_argument(
        "--fail-above",
        type=percent,
        metavar="P",
        help=tr(
            "with diff: exit with 1 when the second run takes more than P %% longer "
            "(emulated: executes more than P %% more instructions)"
        ),
    )
    parser.add_argument(
        "--limit",
        type=at_least(1),
        default=50,
        metavar="N",
        help=tr("number of runs to list, newest first (default: 50)"),
    )


def _call(args: argparse.Namespace) -> Answer:
    from lite_engine.errors import UsageError
    from lite_engine.history import History
    from lite_engine.history.changes import changes

    needs = {"list": 0, "show": 1, "diff": 2, "tag": 2}[args.verb]
    if len(args.names) != needs:
        what = {0: tr("no names"), 1: tr("one run"), 2: tr("two names")}[needs]
        example = {"list": "", "show": " 12", "diff": " 12 15", "tag": " 12 before"}[args.verb]
        raise UsageError(
            tr(
                "`lite runs {verb}{example}` takes {what}, got {count}",
                verb=args.verb,
                example=example,
                what=what,
                count=len(args.names),
            )
        )
    if args.fail_above is not None and args.verb != "diff":
        raise UsageError(tr("--fail-above needs two runs: `lite runs diff 12 15 --fail-above 5`"))
    history = History()
    if args.verb == "list":
        wanted = {k: v for k in ("device", "metric", "kind") if (v := getattr(args, k))}
        return Listed(history.list(args.model, args.limit, **wanted))
    if args.verb == "diff":
        (_, before), (_, after) = (history.get(name) for name in args.names)
        return changes(before, after)
    run, document = history.document(args.names[0])
    if args.verb == "tag":
        history.tag(run.id, args.names[1])
        run, document = history.document(run.id)
    if run.kind != "profile":
        return Saved(run, document)
    return Shown(*history.get(run.id))


def _show(result: Answer, args: argparse.Namespace) -> str:
    if isinstance(result, Listed):
        chosen = any(getattr(args, k) for k in ("model", "device", "metric", "kind"))
        return _list(result.runs, chosen)
    if isinstance(result, Saved):
        return _saved(result)
    if isinstance(result, Shown):
        return _profile(result.run, result.profile)
    if args.fail_above is None:
        return diff_text(result)
    grown = result.growth_percent
    limit = args.fail_above
    judged = (
        tr("{grown:+.1f} %: over the limit of {limit:g} %", grown=grown, limit=limit)
        if grown > limit
        else tr("{grown:+.1f} %: within the limit of {limit:g} %", grown=grown, limit=limit)
    )
    return f"{diff_text(result)}\n{judged}"


def _code(result: Answer, args: argparse.Namespace) -> int:
    if args.fail_above is None or isinstance(result, Listed | Shown | Saved):
        return 0
    return int(result.growth_percent > args.fail_above)


def _list(runs: list[Run], chosen: bool) -> str:
    """`chosen`: only runs of some model, device, metric or kind were asked for."""
    rows = [
        [r.id, r.when, clip(r.model, 32), r.backend, r.precision, r.threads, r.device,
         "–" if r.device.startswith("emulated") or not r.median_ms else f"{r.median_ms:.3f}",
         f"{r.metric} {r.value:.4g}" if r.metric else "", r.kind, r.tag]
        for r in runs
    ]  # fmt: skip
    if not rows and chosen:
        return tr("no saved run is of this model, device, metric and kind")
    if not rows:
        return tr("no runs are saved yet; `lite profile MODEL` saves one")
    head = [
        tr("run"),
        tr("when"),
        tr("model"),
        tr("backend"),
        tr("precision"),
        tr("threads"),
        tr("device"),
        "ms",
        tr("metric"),
        tr("kind"),
        tr("tag"),
    ]
    return table(head, rows, right=(0, 5, 7))


def _saved(result: Saved) -> str:
    run, said = result.run, result.document.get("said")
    lines = [str(line) for line in said] if isinstance(said, list) else []
    head = tr("run {id}: {kind} of {model} on {backend} ({precision}), {when}", id=run.id,
              kind=run.kind, model=run.model, backend=run.backend, precision=run.precision,
              when=run.when)  # fmt: skip
    return "\n".join([head, *lines])


def _profile(run: Run, profile: Profile) -> str:
    from lite_engine.runtime.shares import sentence

    rows = [
        [x.index, clip(x.name, 40), x.op, f"{x.median_ms:.3f}", f"{100 * x.share:.1f}", x.kernel]
        for x in profile.slowest(20)
    ]
    head = ["#", tr("layer"), "op", "ms", "%", tr("kernel")]
    tag = f" [{run.tag}]" if run.tag else ""
    return "\n".join(
        [
            tr(
                "run {id}{tag}: {model} on {backend} ({precision}, {threads}, "
                "{machine}), {when}: median {median_ms:.3f} ms; slowest layers",
                id=run.id,
                tag=tag,
                model=run.model,
                backend=run.backend,
                precision=run.precision,
                threads=trn("{n} thread", "{n} threads", run.threads),
                machine=run.machine,
                when=run.when,
                median_ms=run.median_ms,
            ),
            *([said] if (said := sentence(profile.shares, profile.backend)) else []),
            table(head, rows, right=(0, 3, 4)),
        ]
    )


def diff_text(change: ProfileChange) -> str:
    """The waterfall as a table: total, changes by contribution, total."""
    if change.instructions is not None:
        return _counts_text(change, change.instructions)
    rows = [["", change.baseline, "", "", f"{change.before_ns / 1e6:.6f}", ""]]
    for c in change.changes[:20]:
        pair = f"{c.before_ns / 1e6:.3f} → {c.after_ns / 1e6:.3f}"
        rows.append([c.kind, clip(c.name, 48), pair, f"{c.delta_ns / 1e6:+.6f}", "",
                     clip(" / ".join(c.kernels), 60)])  # fmt: skip
    rest = change.changes[20:]
    if rest:
        delta = sum(c.delta_ns for c in rest)
        rows.append(
            [
                "",
                tr("{smaller} smaller changes", smaller=len(rest)),
                "",
                f"{delta / 1e6:+.6f}",
                "",
                "",
            ]
        )
    rows.append(["", change.candidate, "", "", f"{change.after_ns / 1e6:.6f}", ""])
    head = ["", tr("layers"), "ms", tr("change ms"), tr("total ms"), tr("kernels")]
    told = [tr("warning: {warning}", warning=w) for w in change.warnings]
    return "\n".join([table(head, rows, right=(2, 3, 4)), *told])


def _counts_text(change: ProfileChange, totals: tuple[int, int]) -> str:
    """The same in executed instructions, where times mean nothing."""
    rows = [["", change.baseline, "", f"{totals[0]:,}", ""]]
    counted = [(c, *c.instructions) for c in change.changes if c.instructions is not None]
    layers = [(c, old, new) for c, old, new in counted if old != new]
    for c, old, new in layers[:20]:
        rows.append([c.kind, clip(c.name, 48), f"{new - old:+,}", f"{old:,} → {new:,}",
                     clip(" / ".join(c.kernels), 60)])  # fmt: skip
    if layers[20:]:
        delta = sum(new - old for _, old, new in layers[20:])
        rows.append(
            ["", tr("{smaller} smaller changes", smaller=len(layers) - 20), f"{delta:+,}", "", ""]
        )
    rows.append(["", change.candidate, "", f"{totals[1]:,}", ""])
    head = ["", tr("layers"), tr("change"), tr("executed instructions"), tr("kernels")]
    told = [tr("warning: {warning}", warning=w) for w in change.warnings]
    return "\n".join([table(head, rows, right=(2, 3)), *told])


COMMAND = Command("runs", _configure, _call, _show, _code, lambda result: result.to_dict())
