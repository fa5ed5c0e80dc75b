"""What could be faster: rules over a profile, its plan and the journal of the passes.

Every piece of advice names its evidence, estimates what it gains at most, and gives the command
that tries it. A rule is a function that yields advice; `RULES` is the list.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from lite_messages import tr, trn

from ..ir import Journal
from ..ops import op_names
from ..plan import Plan
from ..quantize.select import HEAVY
from ..runtime.choice import host_target, is_plugin
from ..runtime.shares import place_of
from .advice_case import WORTH_SHARE, Advice, Case
from .advice_sparse import dense_zeros, prunable
from .measured import FEWEST_RUNS
from .record import LayerTime, Profile

#: Below this part of its roof a layer is called slow; half of the roof is what we hope for.
SLOW_FRACTION = 0.25
HOPED_FRACTION = 0.5
#: Steps shorter than this are mostly the threads' meeting each other.
TINY_MS = 0.004
_ACTIVATIONS = op_names(lambda op: op.activation)
#: What limits a layer, in the person's language.
_BOUNDS = {"compute": tr("compute"), "memory": tr("memory")}
_EDGES = ("QuantizeLinear", "DequantizeLinear")
_PRODUCTS = op_names(lambda op: op.takes_activation)


def advise(
    profile: Profile,
    plan: Plan,
    journal: Journal | None = None,
    model: str | Path = "MODEL",
    *,
    reading: str = "",
    running: str = "",
    made: str = "",
) -> list[Advice]:
    """Advice for this profile, the largest gain first. `plan` is the one that was profiled,
    `reading` are the options that every command needs to read the model (`--shape x:1x3x224x224`),
    `running` those that `lite profile` was given besides (`--threads 2`), `made` the command that
    quantized the model (without its `-o`), if that is known.

    Emulated profiles get none: their times mean nothing.
    """
    if not profile.times_meaningful:
        return []
    case = Case(profile, plan, journal or Journal(), str(model), reading, running, made)
    found = [advice for rule in RULES for advice in rule(case)]
    return sorted(found, key=lambda a: -a.gain_ms)


def shape_options(shapes: Mapping[str, Sequence[int]]) -> str:
    """Fixed input shapes as a command takes them."""
    words = [f"--shape {shlex.quote(f'{n}:' + 'x'.join(map(str, s)))}" for n, s in shapes.items()]
    return " ".join(words)


def _below_its_roof(case: Case) -> Iterator[Advice]:
    """A layer that matters and comes nowhere near what the machine can do, not even in its fastest
    run: the roofs are of fastest runs too."""
    if case.profile.runs < FEWEST_RUNS:
        return
    for row in case.profile.layers:
        part = row.roofline_fraction
        if row.overhead or part is None or row.share < WORTH_SHARE or not row.min_ms:
            continue
        if part * row.median_ms / row.min_ms >= SLOW_FRACTION:
            continue
        if row.median_ms <= TINY_MS or (row.ci_ms or 0) > row.median_ms / 2:
            continue  # too short, or only noise
        tried = case.alternative()
        if tried is None:
            return
        yield Advice(
            "below-its-roof",
            [row.name],
            tr(
                "{row} takes {share:.0f} % of the time at {part:.0f} % of its "
                "{bound_by} roof ({kernel})",
                row=row.name,
                share=100 * row.share,
                part=100 * part,
                bound_by=_BOUNDS.get(row.bound_by or "", row.bound_by),
                kernel=row.kernel,
            ),
            tried[0],
            row.median_ms * (1 - part / HOPED_FRACTION),
            tried[1],
            f"session.override({row.name!r}, {tried[2]!r})" if tried[2] else "",
        )


def _fallback_between_device_layers(case: Case) -> Iterator[Advice]:
    """Layers that leave the OpenCL device, or another package's backend, and come back."""
    rows, device = case.profile.layers, case.profile.backend
    if not (case.on_device or is_plugin(device)):
        return
    at = 0
    while at < len(rows):
        end = at
        while end < len(rows) and rows[end].backend != device:
            end += 1
        if at < end:
            away = [r for r in rows[at:end] if not r.overhead]
            around = [r for r in rows[max(0, at - 2) : end + 2] if r.overhead]
            inside = at > 0 and end < len(rows)
            if away and inside and any(not r.overhead for r in rows[end:]):
                gain = sum(r.median_ms for r in around)
                names = [r.name for r in away]
                yield Advice(
                    "fallback",
                    names,
                    trn(
                        "{names} runs on {backend} between layers of the device "
                        "({why}); the transfers cost {gain:.3f} ms",
                        "{names} run on {backend} between layers of the device "
                        "({why}); the transfers cost {gain:.3f} ms",
                        len(names),
                        names=", ".join(names[:3]),
                        backend=place_of(away[0].backend),
                        why=away[0].why,
                        gain=gain,
                    ),
                    tr("measure which of the layers around it should also run on the CPU")
                    if case.on_device
                    else tr("see which operators {backend} takes", backend=device),
                    gain,
                    case.profile_with("--tune normal")
                    if case.on_device
                    else case.verb("info", f"--plugins {device}"),
                    f"session.override({_neighbour(rows, end)!r}, {host_target()!r})",
                )
        at = end + 1


def _neighbour(rows: list[LayerTime], at: int) -> str:
    return next((r.name for r in rows[at:] if not r.overhead), rows[-1].name)


def _unfused_activation(case: Case) -> Iterator[Advice]:
    """An activation that could have been part of the product before it, and why it is not."""
    made = {i: s for s in case.plan.steps for i in s.outputs}
    rows = {row.name: row for row in case.profile.layers}
    for step in case.plan.steps:
        row = rows.get(step.name)
        if row is None or row.share < WORTH_SHARE / 3:
            continue
        if step.op not in _ACTIVATIONS or not step.inputs:
            continue
        maker = made.get(case.plan.root(step.inputs[0]).index) or made.get(step.inputs[0])
        if maker is None or maker.op not in _PRODUCTS:
            continue
        refusals = [e for n in (step.name, maker.name) for e in case.journal.refusals(n)]
        why = next((e.reason for e in refusals if "activation" in e.rule), "")
        yield Advice(
            "unfused-activation",
            [row.name],
            tr(
                "{row} ({op}) runs as a separate step after {maker}",
                row=row.name,
                op=row.op,
                maker=maker.name,
            )
            + (f": {why}" if why else ""),
            tr("check why the passes did not fuse it"),
            row.median_ms,
            case.verb("convert", "-o tried.lite --journal"),
        )


def _channels_and_tile(case: Case) -> Iterator[Advice]:
    """Output channels that leave the kernel's last vector half empty. A tile of the CPU is two
    vectors wide, and the last one is left out where it has no channel."""
    for row in case.profile.layers:
        tile = re.search(r"_(\d+)x(\d+)$", row.kernel)
        if not tile or row.op != "Conv" or row.share < WORTH_SHARE:
            continue
        if not re.search("gemm|3x3|5x5|winograd", row.kernel):
            continue
        if row.backend != "cpu":
            continue
        channels, width = _channels(row.output_shapes), int(tile[2]) // 2
        padded = -(-channels // width) * width
        waste = 1 - channels / padded if channels else 0
        if waste < 0.15:
            continue
        yield Advice(
            "channels-and-tile",
            [row.name],
            tr(
                "{row} has {channels} output channels, but its kernel computes "
                "{width} at a time: {waste:.0f} % of the arithmetic is padding",
                row=row.name,
                channels=channels,
                width=width,
                waste=100 * waste,
            ),
            tr("{padded} channels would take the same time", padded=padded),
            row.median_ms * waste,
            case.verb("info", "--layers"),
        )


def _channels(shapes: list[list[int | None] | None]) -> int:
    """Of the first of a convolution's inputs or outputs; 0 where they are not known."""
    first = shapes[0] if shapes else None
    return (first[1] or 0) if first and len(first) > 1 else 0


def _first_layer_on_the_device(case: Case) -> Iterator[Advice]:
    """The first convolution has three channels: little work per byte for a GPU."""
    first = next((r for r in case.profile.layers if r.op == "Conv"), None)
    if first is None or first.backend != "opencl" or first.share < 2 * WORTH_SHARE:
        return
    channels = _channels(first.input_shapes)
    if not 0 < channels <= 4:
        return
    yield Advice(
        "first-layer",
        [first.name],
        tr(
            "{first} reads {channels} channels and takes {share:.0f} % of the time on the device",
            first=first.name,
            channels=channels,
            share=100 * first.share,
        ),
        tr("run it on the CPU"),
        first.median_ms / 2,
        case.verb("convert", f"-o tried.lite --layer opencl:{shlex.quote(first.name)}=cpu")
        + " && lite profile tried.lite --backend opencl",
        f"session.override({first.name!r}, {host_target()!r})",
    )


def _int8_island(case: Case) -> Iterator[Advice]:
    """Isolated float layers in an int8 model, and the conversions around them. Those at its inputs
    and outputs are needed, and so are those around layers that the quantizer never takes (LayerNorm
    and the sums between such layers)."""
    rows = case.profile.layers
    whole = [i for i, r in enumerate(rows) if r.dtype in ("i8", "u8") and r.op not in _EDGES]
    between = rows[whole[0] : whole[-1]] if whole else []
    edges = [r for r in between if r.op in _EDGES]
    single = [r for r in between if r.dtype.startswith(("f", "bf")) and r not in edges]
    floats = [r.name for r in single]
    cost = sum(r.median_ms for r in edges)
    if len(edges) < 2 or cost < WORTH_SHARE * case.whole_ms:
        return
    if case.made and single and not any(r.op in HEAVY for r in single):
        return
    if case.made:
        advice = tr("quantize all layers of the float model")
        command = f"{case.made} --keep-float '' --float-budget 0 -o tried.lite"
        command = f"{command} && lite profile tried.lite"
    else:
        advice = tr("check why the passes kept them")
        command = case.verb("convert", "-o tried.lite --journal")
    told = ", ".join(floats[:3]) + (
        tr(" and {count} more", count=len(floats) - 3) if len(floats) > 3 else ""
    )
    yield Advice(
        "int8-island",
        [r.name for r in edges],
        tr(
            "{conversions} conversions between int8 and float take {cost:.3f} ms around {told}",
            conversions=len(edges),
            cost=cost,
            told=told or tr("rescaling"),
        ),
        advice,
        cost,
        command,
    )


def _moves(case: Case) -> Iterator[Advice]:
    """Copies, casts and layout changes that add up."""
    rows = [r for r in case.profile.layers if r.copy and "gain_ms" in r.copy]
    cost = sum(r.median_ms for r in rows)
    tried = case.alternative() if cost >= 2 * WORTH_SHARE * case.whole_ms else None
    if tried is None or not tried[2]:
        return  # other threads move as much
    worst = max(rows, key=lambda r: r.median_ms)
    fix = worst.copy["fix"] if worst.copy else ""
    many = (
        tr("{copies} copies and layout changes take", copies=len(rows))
        if len(rows) > 1
        else tr("One copy or layout change takes")
    )
    yield Advice(
        "moves",
        [r.name for r in rows],
        tr(
            "{many} {cost:.3f} ms, the largest is {worst} ({median_ms:.3f} ms: {fix})",
            many=many,
            cost=cost,
            worst=worst.name,
            median_ms=worst.median_ms,
            fix=fix,
        ),
        tried[0],
        cost,
        tried[1],
    )


def _tiny_steps(case: Case) -> Iterator[Advice]:
    """Many steps too short for several threads."""
    rows = [r for r in case.profile.layers if r.backend == "cpu"]
    tiny = [r for r in rows if r.median_ms <= TINY_MS]
    if case.profile.threads < 2 or case.profile.runs < FEWEST_RUNS:
        return
    if len(tiny) * 2 < len(rows) or not rows:
        return
    spent = sum(r.median_ms for r in tiny)
    yield Advice(
        "tiny-steps",
        [],
        tr(
            "{count} of {layers} layers take under {tiny_ms:.0f} µs, too short for several threads",
            count=len(tiny),
            layers=len(rows),
            tiny_ms=1000.0 * TINY_MS,
        ),
        tr("measure with one thread"),
        spent / 2,
        case.profile_with("--threads 1"),
    )


def _another_backend(case: Case) -> Iterator[Advice]:
    """Backends of other packages that are here and did not run the model."""
    if case.profile.device != "local":
        return
    names = [n for n in case.plugins if n != case.profile.backend]
    if names:
        yield Advice(
            "another-backend",
            [],
            trn(
                "the backend {names} is installed and has not run this model",
                "the backends {names} are installed and have not run this model",
                len(names),
                names=", ".join(names),
            ),
            tr("measure it there"),
            0.0,
            case.profile_with("", names[0]),
        )


RULES: tuple[Callable[[Case], Iterator[Advice]], ...] = (
    _below_its_roof,
    _fallback_between_device_layers,
    _unfused_activation,
    _channels_and_tile,
    _first_layer_on_the_device,
    _int8_island,
    _moves,
    _tiny_steps,
    _another_backend,
    dense_zeros,
    prunable,
)
