"""Where the time goes: every layer timed in every run, reconciled with the total.

The total comes from runs whose clocks nobody reads, the layers from runs between them: so the
profiler's own share is measured in the same minute as what it disturbs. Time-stamps are always
taken (one clock read per step, and two more where several threads note what each of them computes);
reading them out is `overhead_ms` and is in neither number.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from lite_messages import tr

from ..errors import UsageError
from ..plan import Plan, Step
from ..runtime.execute import Execution
from ..runtime.predictor import Predictor
from ..runtime.shares import Share, shares
from ..whole_numbers import as_whole
from .measured import Samples, measure_here, measure_there, median_intervals, usual_runs
from .memory_map import memory_map
from .moves import Moves
from .record import Compiled, LayerTime, Profile
from .roof import Roof, measured_roof
from .warnings import busy_with, in_numpy_here, refusals, subgraphs, told_apart_ms, warnings_of

WARMUP_RUNS = 3
#: Layers below this share of the time do not say how well layers can be ranked.
_RANKED_SHARE = 0.01


def profile(
    predictor: Predictor,
    feeds: Mapping[str, Any],
    *,
    runs: int | None = None,
    warmup: int = WARMUP_RUNS,
    progress: Callable[[int, int], None] | None = None,
    device: str | None = None,
    roof: bool = True,
) -> Profile:
    """Runs the model and times every layer. `progress(done, total)` may raise to cancel.

    Without `runs` there are `usual_runs`. `device` names where it runs (the predictor's own device
    by default); `roof` measures this machine's roofs once. An OpenCL device that was chosen
    automatically and fails is left, as in `Predictor.run`. Raises ShapeError when the feeds do not
    fit, UsageError without runs.
    """
    for name, given, least in (("runs", runs, 1), ("warmup", warmup, 0)):
        number = as_whole(given)
        if given is not None and (number is None or number < least):
            raise UsageError(
                tr("{name} must be a whole number of {least} or more, got {value!r}",
                   name=name, least=least, value=given)
            )  # fmt: skip
    return predictor.or_on_the_cpu(
        lambda: _profile(predictor, feeds, runs, warmup, progress, device, roof)
    )


def _profile(
    predictor: Predictor,
    feeds: Mapping[str, Any],
    runs: int | None,
    warmup: int,
    progress: Callable[[int, int], None] | None,
    device: str | None,
    roof: bool,
) -> Profile:
    arrays = predictor.check_feeds(feeds)
    ordered = [arrays[n] for n in predictor.input_names]
    begin = time.perf_counter()
    execution = predictor.execution({n: a.shape for n, a in arrays.items()})
    execution.tap(())
    runs = runs or usual_runs(len(execution.plan.steps))
    if predictor.device is None:
        measured = measure_here(execution, ordered, runs, warmup, begin, progress)
    else:
        measured = measure_there(execution, ordered, runs, warmup, predictor.device)
    taken, meaningful = measured.samples, not predictor.emulated
    limits = measured_roof(predictor) if roof else None
    layers = _rows(execution.plan, taken, limits)
    total = _percentiles(taken.plain)
    sum_ms = float(np.median((taken.ends - taken.starts).sum(axis=1)))
    memory = execution.memory()
    out = Profile(
        model=predictor.model.name,
        backend=predictor.backend,
        device=device or (predictor.device.name if predictor.device else "local"),
        threads=predictor.threads if meaningful else 1,
        environment=measured.conditions,
        total_ms=total,
        first_run_ms=measured.first_ms,
        layers=layers,
        overhead_ms=float(np.median(taken.reading)),
        peak_memory_bytes=measured.peak_bytes,
        runs=runs,
        precision=predictor.display_precision,
        sum_ms=sum_ms,
        unexplained_ms=total["median"] - sum_ms,
        profiled_ms=float(np.median(taken.profiled)),
        warm_ms=measured.warm_ms,
        rankable_us=_rankable_us(layers),
        memory=memory,
        memory_map=memory_map(execution.plan, execution.segments, memory.get("arena", 0)),
        roofline=None if limits is None else limits.to_dict(),
        samples_ms=taken.plain.tolist(),
        times_meaningful=meaningful,
        emulated=not meaningful,
        overhead_share=_overhead_share(execution, total["min"]),
        shares=_shares(layers, meaningful),
        compiled=[Compiled(*found) for found in execution.compiled()],
    )
    if measured.instructions is not None:
        counts = measured.instructions
        out.instructions = {key: counts[key] for key in ("run", "first_result")}
        for row, count in zip(out.layers, counts["steps"], strict=True):
            row.instructions = count
    step_ms = told_apart_ms(taken.plain)
    out.busy = busy_with(out, step_ms)
    out.step_ms = step_ms if out.busy else 0.0
    refused = refusals({**predictor.refused, **execution.refusals})
    estimates = subgraphs(execution.plan, out.layers)
    numpy: list[str] = []
    if predictor.backend != "reference":
        shapes = {n: a.shape for n, a in arrays.items()}
        numpy = in_numpy_here(predictor.graph, execution.plan, shapes)
    out.warnings = [*measured.warnings, *warnings_of(out), *refused, *estimates, *numpy]
    return out.of(predictor.graph)


def _shares(layers: list[LayerTime], timed: bool) -> dict[str, Share]:
    return shares(((x.backend, x.median_ms) for x in layers if not x.overhead), timed=timed)


def _overhead_share(execution: Execution, fastest_ms: float) -> float:
    """An upper bound: a clock read from Python costs more than one from C++. A device's steps are
    timed in a repetition of their own and cost the others nothing."""
    each = 3 if execution.threads > 1 else 1
    stamps = sum(each for step in execution.plan.steps if step.backend != "opencl")
    return stamps * _clock_read_ms() / fastest_ms if fastest_ms else 0.0


def _clock_read_ms(batches: int = 20, reads: int = 200) -> float:
    """One clock read, from the fastest of several batches."""
    best = math.inf
    for _ in range(batches):
        begin = time.perf_counter_ns()
        for _ in range(reads):
            time.perf_counter_ns()
        best = min(best, time.perf_counter_ns() - begin)
    return best / reads / 1e6


def _percentiles(samples: np.ndarray) -> dict[str, float]:
    return {
        "median": float(np.median(samples)),
        "min": float(samples.min()),
        "mean": float(samples.mean()),
        "p90": float(np.percentile(samples, 90)),
        "p99": float(np.percentile(samples, 99)),
        "max": float(samples.max()),
    }


class _Spread(NamedTuple):
    """What the runs say of a layer's time, in ms."""

    median: float
    least: float
    p90: float
    interval: float | None


def _spreads(times: np.ndarray) -> list[_Spread]:
    """Of the columns of (runs, layers), all at once: a model may have ten thousand layers."""
    columns = (
        np.median(times, axis=0), times.min(axis=0), np.percentile(times, 90, axis=0)
    )  # fmt: skip
    return list(map(_Spread, *(c.tolist() for c in columns), median_intervals(times)))


def _rows(plan: Plan, taken: Samples, roof: Roof | None) -> list[LayerTime]:
    times = taken.ends - taken.starts
    spreads = _spreads(times)
    whole = math.fsum(s.median for s in spreads) or 1.0
    typical = int(np.argmin(np.abs(taken.profiled - np.median(taken.profiled))))
    rows, moves = [], Moves(plan)
    for i, step in enumerate(plan.steps):
        own = roof if roof is not None and _is_under(roof, plan, step) else None
        row = _row(plan, step, spreads[i], taken.variants[i], whole, own)
        row.span_ms = [float(taken.starts[typical, i]), float(taken.ends[typical, i])]
        if taken.times:
            time = taken.times[typical][i]
            row.threads_ms = [ns / 1e6 for ns in time.threads_ns]
            row.launches_ms = [[ns / 1e6 for ns in launch] for launch in time.launches_ns]
        if row.overhead:
            row.copy = moves.of(step, row.median_ms)
        rows.append(row)
    return rows


def _in_integers(plan: Plan, step: Step) -> bool:
    return str(plan.tensors[step.outputs[0]].dtype) in ("i8", "u8")


def _is_under(roof: Roof, plan: Plan, step: Step) -> bool:
    """The other backend has other roofs, and arithmetic in integers is not under that of floats."""
    own = step.backend == plan.backend
    if not own or roof.integer_gops or not _in_integers(plan, step):
        return own
    return roof.bound_by(step.flops, step.bytes) == "memory"


def _row(
    plan: Plan, step: Step, time: _Spread, variant: str, whole: float, roof: Roof | None
) -> LayerTime:
    """A step that takes part of `whole` ms."""
    median = time.median
    seconds = median / 1e3
    shapes = [
        [plan.tensors[i].known_shape for i in ports if i >= 0]
        for ports in (step.inputs, step.outputs)
    ]
    read = {plan.root(i).index for i in step.inputs if i >= 0}
    weights = sum(plan.tensors[i].nbytes for i in read if plan.tensors[i].role == "weight")
    work = step.flops, step.bytes
    integer = _in_integers(plan, step)
    scope, slash, _ = step.name.strip("/").partition("/")
    return LayerTime(
        index=step.index,
        name=step.name,
        op=step.op,
        sources=list(step.sources),
        backend=step.backend,
        kernel=variant,
        why=step.why,
        input_shapes=shapes[0],
        output_shapes=shapes[1],
        dtype=str(plan.tensors[step.outputs[0]].dtype),
        median_ms=median,
        min_ms=time.least,
        p90_ms=time.p90,
        ci_ms=time.interval,
        share=median / whole,
        macs=step.macs,
        flops=step.flops,
        bytes=step.bytes,
        weight_bytes=weights,
        gflops=step.flops / seconds / 1e9 if seconds else 0.0,
        gbytes_per_s=step.bytes / seconds / 1e9 if seconds else 0.0,
        roofline_fraction=roof.fraction(*work, median, integer) if roof else None,
        bound_by=roof.bound_by(*work, integer) if roof else None,
        overhead=step.node is None,
        block=scope if slash else "",
    )


def _rankable_us(layers: list[LayerTime]) -> float:
    """√2 times the usual half interval of the layers that matter: the interval of a difference."""
    widths = [x.ci_ms for x in layers if x.share >= _RANKED_SHARE and x.ci_ms is not None]
    return 1e3 * math.sqrt(2) * float(np.median(widths)) if widths else 0.0
