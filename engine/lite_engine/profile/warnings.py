"""Why the times of a profile may be unreliable, as sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from lite_messages import tr, trn

from ..backends import SHARED
from ..errors import LiteError
from ..ir import Graph, Shape
from ..ops import specialise
from ..ops.bounds import is_open
from ..passes.fixed_rows import specialised_rows
from ..plan import Plan, make_plan
from .measured import FEWEST_RUNS, median_interval
from .record import LayerTime, Profile

#: Layers that a sentence names.
_NAMED = 3


def warnings_of(result: Profile) -> list[str]:
    if not result.times_meaningful:
        more = tr(", executed instructions") if result.instructions else ""
        return [tr("emulated: kernels, shapes, memory{more} are exact, times are not", more=more)]
    out = []
    if result.runs < FEWEST_RUNS:
        out.append(
            trn(
                "{n} run: too few for confidence intervals and for ranking layers; "
                "measure {fewest_runs} or more",
                "{n} runs: too few for confidence intervals and for ranking layers; "
                "measure {fewest_runs} or more",
                result.runs,
                fewest_runs=FEWEST_RUNS,
            )
        )
    cores = result.environment.get("cores")
    if isinstance(cores, int) and result.threads > cores and result.backend != "opencl":
        out.append(
            trn(
                "{threads} threads on {n} core wait for each other; use at most --threads {n}",
                "{threads} threads on {n} cores wait for each other; use at most --threads {n}",
                cores,
                threads=result.threads,
            )
        )
    if result.busy:
        out.insert(0, result.busy)
    elif said := outside_the_layers(result):
        out.append(said)
    return out


def busy_with(result: Profile, step_ms: float) -> str:
    """That the machine did other work during the runs, what shows it, and that totals are rounded
    where `step_ms` says so; empty where nothing shows it. Runs differ, or each was interrupted in
    another layer, so that the layers' medians add up to less than the runs took."""
    median, p90 = result.total_ms["median"], result.total_ms["p90"]
    medians = sum(x.median_ms for x in result.layers)
    if not result.times_meaningful:
        return ""
    if median > 0 and p90 > 1.25 * median:
        said = tr(
            "the machine is busy: one run in ten took at least {p90:.1f} times the median",
            p90=p90 / median,
        )
    elif abs(result.sum_ms - medians) > 0.1 * result.sum_ms:
        said = tr(
            "the machine is busy: each run was interrupted in other layers, so the medians of the "
            "layers add up to {share:.0f} % of a run",
            share=100 * medians / result.sum_ms,
        )
    else:
        return ""
    return said + (tr("; times are rounded to the digits that are certain") if step_ms else "")


def told_apart_ms(samples: np.ndarray) -> float:
    """The step to which totals are rounded on a busy machine: the width of the 95 % interval of
    their median, as a power of ten, with one digit left of the median; 0 with too few runs."""
    half, median = median_interval(samples), float(np.median(samples))
    return 10.0 ** math.floor(math.log10(min(2 * half, median))) if half and median > 0 else 0.0


def refusals(layers: Mapping[str, str]) -> list[str]:
    """What failed on the device, once for each reason. `layers` maps them to reasons."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in layers.items():
        by_reason.setdefault(reason, []).append(name)
    out = []
    for reason, names in by_reason.items():
        more = tr(" and {count} more", count=len(names) - _NAMED) if len(names) > _NAMED else ""
        out.append(
            tr(
                "{reason}; replaced by another variant or the CPU: {names}{more}",
                reason=reason,
                names=", ".join(names[:_NAMED]),
                more=more,
            )
        )
    return out


def in_numpy_here(graph: Graph, plan: Plan, shapes: Mapping[str, Shape]) -> list[str]:
    """That NumPy ran layers for which the native program has kernels: its times are others."""
    here = [s.name for s in plan.steps if s.backend == "reference"]
    fixed = specialise(graph, shapes).nodes if here else []
    open_sizes = {n.name for n in fixed if any(map(is_open, n.outputs))}
    names = [name for name in here if name in open_sizes]
    if not names:
        return []
    try:
        program = make_plan(specialised_rows(graph, shapes), "cpu", specialised=True)
    except LiteError:
        return []
    if any(s.backend == "reference" for s in program.steps):
        return []  # there is none
    more = tr(" and {count} more", count=len(names) - _NAMED) if len(names) > _NAMED else ""
    return [
        tr(
            "NumPy ran {names}{more}, whose sizes depend on data: these are not the times of a "
            "device, whose program has kernels for them; measure it with lite convert and "
            "lite_run MODEL.lite --profile FILE.json",
            names=", ".join(names[:_NAMED]),
            more=more,
        )
    ]


def unranked(result: Profile) -> str:
    """How close two layers may be and still be ranked, as the end of a sentence."""
    if not result.rankable_us:
        return ""
    return tr(
        "; layers closer than {rankable_us:.1f} µs cannot be ranked", rankable_us=result.rankable_us
    )


def _ms(value: float) -> str:
    """Three significant digits, as in the headline."""
    digits = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0
    return f"{value:.{min(digits, 3)}f} ms"


def outside_the_layers(result: Profile) -> str:
    """Why the layers and the total differ by more than 5 %; empty where they do not."""
    median = result.total_ms["median"]
    if median <= 0 or abs(result.unexplained_ms) <= 0.05 * median:
        return ""
    if abs(result.profiled_ms - median) > 0.5 * abs(result.unexplained_ms):
        return tr(
            "the speed of the machine changed: runs with layer timing took {profiled}, runs "
            "without {plain}",
            profiled=_ms(result.profiled_ms),
            plain=_ms(median),
        )
    if result.unexplained_ms > 0:
        return tr(
            "{unexplained} of a run go into copying inputs and outputs and waiting between "
            "backends",
            unexplained=_ms(result.unexplained_ms),
        )
    return tr("steps overlap on the device: together the layers take longer than a run")


def subgraphs(plan: Plan, layers: Sequence[LayerTime]) -> list[str]:
    """What was estimated of an accelerator's sub-graphs, beside their measured time."""
    out = []
    for name in dict.fromkeys(name for name, _, _ in plan.subgraphs):
        own = [(count, ms) for backend, count, ms in plan.subgraphs if backend == name]
        rows = [x for x in layers if x.backend == name]
        out.append(
            trn(
                "{name}: {n} sub-graph with {layers} layers, estimated {estimate:.3f} ms, "
                "measured {measured:.3f} ms",
                "{name}: {n} sub-graphs with {layers} layers, estimated {estimate:.3f} ms, "
                "measured {measured:.3f} ms",
                len(own),
                name=name,
                layers=sum(count for count, _ in own),
                estimate=sum(ms for _, ms in own),
                measured=sum(x.median_ms for x in rows),
            )
        )
        if any(x.kernel.endswith(SHARED) for x in rows):
            out[-1] += tr("; its layers' times are shares of that by their estimates")
    return out
