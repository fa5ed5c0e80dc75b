"""`lite profile`: a table of layers, where the time goes."""

from __future__ import annotations

import argparse
import json
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lite_engine.ir import format_shape
from lite_engine.terminal import printable
from lite_messages import tr, trn

from ..words import MEMORY, number
from ._base import (
    Command,
    add_backend,
    add_device,
    add_effort,
    add_input,
    add_model,
    at_least,
    load_model,
    write_text,
)
from ._table import clip, table

if TYPE_CHECKING:
    from lite_engine.profile import LayerTime, Profile
    from lite_engine.profile.advice import Advice


#: How many lines of advice are listed without `--all-advice`.
ADVICE = 3
#: A layer at more than this share of its roofline says that the roofline is wrong.
ABOVE = 1.1


@dataclass
class Profiled:
    """A profile, what could be better, the number under which the history keeps it, and how layers
    were placed on OpenCL and the CPU."""

    profile: Profile
    advice: list[Advice] = field(default_factory=list)
    run: int | None = None
    placement: str = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.profile, name)

    def to_dict(self) -> dict[str, Any]:
        """DESIGN's profile JSON with "advice", "run" and "placement"."""
        own = {"advice": [a.to_dict() for a in self.advice], "run": self.run}
        return {**self.profile.to_dict(), **own, "placement": self.placement}


def _first_shape(shapes: list[list[int | None] | None]) -> str:
    return "".join(format_shape(None if s is None else tuple(s)) for s in shapes[:1])


def _configure(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_input(parser)
    add_backend(parser)
    add_effort(
        parser,
        tr(
            "with OpenCL, first measure the variants of each layer, and which layers are "
            "faster on the CPU: rapid, normal or exhaustive"
        ),
    )
    parser.add_argument(
        "--runs",
        type=at_least(1),
        metavar="N",
        help=tr(
            "number of timed runs (default: 20, fewer for more than 1000 layers; under "
            "emulation 1 run, whose instructions are counted)"
        ),
    )
    parser.add_argument(
        "--warmup",
        type=at_least(0),
        default=3,
        metavar="N",
        help=tr("number of runs before the timed ones (default: 3)"),
    )
    add_device(parser)
    parser.add_argument(
        "--sort",
        choices=("order", "time"),
        default="order",
        help=tr("sort layers by execution order or by time (default: order)"),
    )
    parser.add_argument(
        "--csv",
        metavar="FILE",
        help=tr("write the layers as comma-separated values; - is standard output"),
    )  # fmt: skip
    parser.add_argument("--trace", metavar="FILE", help=tr("write a Chrome trace of one run"))
    parser.add_argument(
        "--netron",
        metavar="FILE",
        help=tr("write a file with the times, to drop on the model in Netron"),
    )
    parser.add_argument(
        "--remeasure-roofs",
        action="store_true",
        help=tr("measure the roofline peaks of this machine anew, in this and the next profiles"),
    )
    parser.add_argument(
        "--all-advice",
        action="store_true",
        help=tr("list all advice (default: the {most} lines that gain most)", most=ADVICE),
    )
    parser.add_argument("--tag", default="", help=tr("a name for this run in `lite runs`"))
    parser.add_argument(
        "--history", action=argparse.BooleanOptionalAction, default=True,
        help=tr("save the profile for `lite runs` (default: on)"),
    )  # fmt: skip


def _call(args: argparse.Namespace) -> Profiled:
    from lite_engine.devices import find_device
    from lite_engine.history import History
    from lite_engine.history._history import check_tag
    from lite_engine.profile import profile
    from lite_engine.profile.advice import advise, shape_options
    from lite_engine.profile.roof import forget_roofs
    from lite_engine.runtime import Predictor
    from lite_engine.runtime.inputs import random_feeds, read_feeds
    from lite_engine.runtime.placement import place
    from lite_engine.runtime.tune import tune

    check_tag(args.tag)
    if args.remeasure_roofs:
        forget_roofs()
    model = load_model(args)
    feeds = read_feeds(model, args.input) if args.input else random_feeds(model)
    predictor = Predictor(
        model,
        args.backend,
        threads=args.threads,
        precision=args.precision,
        device=find_device(args.device),
    )
    if args.tune:
        tune(predictor, args.tune)
        place(predictor, feeds)
    runs = args.runs or (1 if predictor.emulated else None)
    made = profile(predictor, feeds, runs=runs, warmup=args.warmup)
    if args.precision and args.precision != predictor.precision:
        made.warnings.append(
            tr(
                "{backend} does not support {precision}: measured in {used}",
                backend=predictor.backend,
                precision=args.precision,
                used=predictor.precision,
            )
        )
    plan = predictor.plan({n: a.shape for n, a in feeds.items()})
    advice = advise(
        made, plan, model.journal, args.model,
        reading=f"{_given(args, 'params')} {shape_options(dict(args.shape))}".strip(),
        running=_given(args, "input", "device", "threads", "precision"),
        made=model.metadata.get("quantized_by", ""),
    )  # fmt: skip
    result = Profiled(made, advice, placement=predictor.decision.placement)
    if args.history:
        result.run = History().add(made, str(args.model), args.tag)
    _write(made, args)
    return result


def _write(made: Profile, args: argparse.Namespace) -> None:
    """The files that were asked for beside --json."""
    from lite_engine.profile.export import chrome_trace, layers_csv, netron_attachment

    if args.csv:
        write_text(layers_csv(made), args.csv)
    if args.trace:
        write_text(json.dumps(chrome_trace(made)), args.trace)
    if args.netron:
        write_text(json.dumps(netron_attachment(made), indent=1), args.netron)


def _given(args: argparse.Namespace, *names: str) -> str:
    """These options as they were given, for a shell."""
    words = []
    for name in names:
        value = getattr(args, name)
        for one in value if isinstance(value, list) else [value]:
            if one not in (None, "local"):
                words += [f"--{name}", str(one)]
    return shlex.join(words)


def _show(result: Profiled, args: argparse.Namespace) -> str:
    if "-" in (args.csv, args.trace, args.netron):
        return ""
    layers = result.layers if args.sort == "order" else result.slowest(len(result.layers))
    columns = _counted if result.instructions else _timed
    rows = [
        [
            x.index,
            clip(x.name, 36),
            x.op,
            *columns(x, result).values(),
            _first_shape(x.output_shapes),
            x.kernel,
            clip(x.why, 44),
            clip(" + ".join(x.sources), 44),
        ]
        for x in layers
    ]
    numbers = list(columns(layers[0], result)) if layers else []
    head = ["#", tr("layer"), "op", *numbers, tr("output"), tr("kernel"), tr("why"), tr("from")]
    lines = [table(head, rows, right=(0, *range(3, 3 + len(numbers)))), "", *_summary(result)]
    lines += [tr("warning: {warning}", warning=w) for w in result.warnings]
    lines += [tr("layers: {placement}", placement=result.placement)] if result.placement else []
    lines += _advice(result.advice, None if args.all_advice else ADVICE)
    if result.run is not None:
        lines.append(tr("saved as run {run}: lite runs show {run}", run=result.run))
    lines += [
        tr("wrote {path}", path=p) for p in (args.csv, args.trace, args.netron, args.json) if p
    ]
    return "\n".join(lines)


def _advice(found: list[Advice], most: int | None) -> list[str]:
    """The advice that gains most, and where the rest is."""
    lines = [tr("advice: {advice}", advice=printable(str(a))) for a in found[:most]]
    if rest := len(found) - len(lines):
        lines.append(
            trn(
                "{n} more line of advice gains less: --all-advice lists it",
                "{n} more lines of advice gain less: --all-advice lists them",
                rest,
            )
        )
    return lines


def _timed(x: LayerTime, result: Profiled) -> dict[str, str]:
    """A layer's numbers by heading: times and rates."""
    return {
        "ms": f"{x.median_ms:.3f}",
        "95 %": "–" if x.ci_ms is None else f"±{x.ci_ms:.3f}",
        "%": f"{100 * x.share:.1f}",
        "GFLOP/s": f"{x.gflops:.1f}" if x.flops else "–",
        "GB/s": f"{x.gbytes_per_s:.1f}",
        tr("roofline %"): "–"
        if x.roofline_fraction is None
        else f"{100 * x.roofline_fraction:.0f}",
    }


def _counted(x: LayerTime, result: Profiled) -> dict[str, str]:
    """The same under emulation: executed instructions, and how many a multiply-add took."""
    if x.instructions is None:
        return {tr("instructions"): "–", "%": "–", tr("per MAC"): "–"}
    return {
        tr("instructions"): f"{x.instructions:,}",
        "%": f"{100 * x.instructions / result.instructions['run']:.1f}",
        tr("per MAC"): f"{x.instructions / x.macs:.3f}" if x.macs else "–",
    }


def _summary(result: Profiled) -> list[str]:
    """Totals, the reconciliation, roof and memory."""
    from lite_engine.profile.warnings import unranked
    from lite_engine.runtime.shares import sentence

    total, memory = result.total_ms, result.memory_map.get("peak")
    lines = (
        [_instructions(result)]
        if result.instructions
        else [
            tr(
                "{whose}: median {median:.3f} ms, min {min:.3f}, p90 {p90:.3f}, p99 "
                "{p99:.3f} over {runs}; first run {first_run_ms:.1f} ms",
                whose=_whose(result),
                median=total["median"],
                min=total["min"],
                p90=total["p90"],
                p99=total["p99"],
                runs=trn("{n} run", "{n} runs", result.runs),
                first_run_ms=result.first_run_ms,
            ),
            tr(
                "sum of the layers {sum_ms:.3f} ms, {unexplained_ms:+.3f} ms outside "
                "them; runs with layer timing take {profiled_ms:.3f} ms, reading the "
                "time stamps {overhead_ms:.3f} ms more{unranked}",
                sum_ms=result.sum_ms,
                unexplained_ms=result.unexplained_ms,
                profiled_ms=result.profiled_ms,
                overhead_ms=result.overhead_ms,
                unranked=unranked(result.profile),
            ),
            tr(
                "overhead of the profiler in a run: at most {overhead_share:.3f} % (clock reads)",
                overhead_share=100 * result.overhead_share,
            ),
        ]
    )
    lines.insert(1, sentence(result.shares, result.backend))
    if peaks := result.roofline:
        integers = peaks["integer_gops"]
        lines.append(
            tr("roofline peaks measured here: {gflops:.1f} GFLOP/s, ", gflops=peaks["gflops"])
            + (tr("{integers:.1f} GOP/s in int8, ", integers=integers) if integers else "")
            + tr(
                "{memory:.1f} GB/s from memory, {cache:.1f} GB/s from cache ({what})",
                memory=peaks["gbytes_per_s"],
                cache=peaks["cache_gbytes_per_s"],
                what=", ".join(filter(None, [peaks["what"], peaks.get("date")])),
            )
        )
        lines += _above(result.profile)
    if told := _clock_and_heat(result.environment):
        lines.append(told)
    sizes = ", ".join(f"{MEMORY.get(k, k)} {number(v, 'B')}" for k, v in result.memory.items())
    lines.append(
        tr(
            "memory: {sizes}; process peak {peak}",
            sizes=sizes,
            peak=number(result.peak_memory_bytes, "B"),
        )
    )
    if memory:
        lines.append(tr("arena: {peak}", peak=memory["text"]))
    return lines


def _above(result: Profile) -> list[str]:
    """One line where layers are faster than the roofline allows: then it is the roofline."""
    above = [x for x in result.layers if (x.roofline_fraction or 0) > ABOVE]
    if not above:
        return []
    best = max(above, key=lambda x: x.roofline_fraction or 0)
    return [
        trn(
            "the roofline is too low: {n} layer is above it ({name}: {share:.0f} %); the machine "
            "was busy when it was measured. Measure it again: lite profile --remeasure-roofs",
            "the roofline is too low: {n} layers are above it ({name}: {share:.0f} %); the machine "
            "was busy when it was measured. Measure it again: lite profile --remeasure-roofs",
            len(above),
            name=best.name,
            share=100 * (best.roofline_fraction or 0),
        )
    ]


def _clock_and_heat(told: dict[str, Any]) -> str:
    """Clock and temperature before and after the runs, as far as they were readable."""
    parts = []
    for key, size, unit in (("frequency_khz", 1e6, "GHz"), ("temperature_millicelsius", 1e3, "°C")):
        if isinstance(told.get(key), int):
            after = told.get(f"{key}_after", told[key])
            parts.append(
                tr(
                    "{before:.3g} {unit} before, {after:.3g} after",
                    before=told[key] / size,
                    unit=unit,
                    after=after / size,
                )
            )
    return tr("processor: {facts}", facts="; ".join(parts)) if parts else ""


def _whose(result: Profiled) -> str:
    """Which model, and what ran it how."""
    how = tr(
        "{precision}, {threads}, {cpu}",
        precision=result.precision,
        threads=trn("{n} thread", "{n} threads", result.threads),
        cpu=result.environment["cpu"],
    )
    return tr("{model} on {backend} ({how})", model=result.model, backend=result.backend, how=how)


def _instructions(result: Profiled) -> str:
    counts, macs = result.instructions, sum(x.macs for x in result.layers)
    each = tr(" ({counts:.3f} per MAC)", counts=counts["run"] / macs) if macs else ""
    return tr(
        "{whose}: {run:,} instructions per run{each}, {first:,} from the "
        "start of the runner to the first result",
        whose=_whose(result),
        run=counts["run"],
        each=each,
        first=counts["first_result"],
    )


COMMAND = Command("profile", _configure, _call, _show, data=lambda result: result.to_dict())
