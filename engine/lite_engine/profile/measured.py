"""Timed runs of a planned model, on this machine or on a device."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from lite_messages import tr

from .. import system
from ..backends import Samples as RunnerSamples
from ..backends import StepTime
from ..devices import Device, condition
from ..runtime.execute import Execution
from .environment import environment, readings

#: Below this many the interval of a median is not known (order statistics, 95 %).
FEWEST_RUNS = 6
#: Timed runs where no number is asked for, and from how many layers on there are fewer: noting and
#: reading the clocks of all layers takes many times what such a run takes by itself.
RUNS, FEWER_RUNS, MANY_LAYERS = 20, 8, 1000
#: By how much the first and the last third of the runs may differ on a steady device.
STEADY_SHARE = 0.1
#: What is read again after the runs.
_CHANGING = ("frequency_khz", "temperature_millicelsius")


@dataclass
class Samples:
    """What the timed runs gave, in ms: (runs,) totals and (runs, steps) layers. `times` has each
    profiled run's steps with their threads and launches, of runs on this machine."""

    plain: np.ndarray
    profiled: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    reading: np.ndarray
    variants: list[str]
    times: list[list[StepTime]] = field(default_factory=list)


@dataclass
class Measured:
    """What a machine says of its runs: the samples, and under which conditions they were taken."""

    samples: Samples
    first_ms: float
    conditions: dict[str, Any]
    peak_bytes: int
    warnings: list[str]
    warm_ms: list[float] = field(default_factory=list)
    instructions: dict[str, Any] | None = None


def usual_runs(layers: int) -> int:
    """Timed runs of a plan of so many layers where no number is asked for: as many times of layers
    as RUNS of MANY_LAYERS have, and no fewer than FEWER_RUNS of each."""
    return max(FEWER_RUNS, min(RUNS, RUNS * MANY_LAYERS // max(layers, 1)))


def measure_here(
    execution: Execution,
    ordered: list[np.ndarray],
    runs: int,
    warmup: int,
    begin: float,
    progress: Callable[[int, int], None] | None,
) -> Measured:
    """On this machine; planning began at `begin`."""
    execution.run(ordered)
    first_ms = (time.perf_counter() - begin) * 1e3
    warm = [_one(execution, ordered) for _ in range(max(0, warmup - 1))]
    before = environment()
    samples = _measure(execution, ordered, runs, progress)
    after = readings()
    changed = {f"{k}_after": after[k] for k in _CHANGING if k in after}
    told = condition.warnings(before, after)
    conditions = {**before, **changed}
    return Measured(samples, first_ms, conditions, system.peak_rss_bytes(), told, warm)


def measure_there(
    execution: Execution, ordered: list[np.ndarray], runs: int, warmup: int, device: Device
) -> Measured:
    """On a device, in one run of its program."""
    remote = execution.measure(ordered, runs=runs, warmup=warmup)
    return Measured(
        _from_device(remote, [t.variant for t in execution.times()]),
        remote.first_ns / 1e6,
        {
            "cpu": tr("{target} of {device}", target=device.target(), device=device.name),
            **remote.environment,
        },
        sum(execution.memory().values()),
        [*remote.warnings, *(_unsteady(remote.total_ns) if device.times_meaningful else ())],
        instructions=remote.instructions,
    )


def _unsteady(total_ns: np.ndarray) -> list[str]:
    """Whether the runs were still getting faster or slower: the clock was not steady yet."""
    third = len(total_ns) // 3
    if third < FEWEST_RUNS // 2:
        return []
    first, last = np.median(total_ns[:third]) / 1e6, np.median(total_ns[-third:]) / 1e6
    if abs(first - last) <= STEADY_SHARE * min(first, last):
        return []
    return [
        tr(
            "the device was not steady: {first:.3f} ms at first, {last:.3f} ms at the end; "
            "use more --warmup",
            first=first,
            last=last,
        )
    ]


def _from_device(made: RunnerSamples, variants: list[str]) -> Samples:
    """The runner's own repetitions, steps laid end to end."""
    ends = np.cumsum(made.steps_ns, axis=1) / 1e6
    totals = made.total_ns / 1e6
    reading = np.zeros(len(totals))  # it reads its clocks out after the last run
    return Samples(totals, totals, ends - made.steps_ns / 1e6, ends, reading, variants)


def _one(execution: Execution, ordered: list[np.ndarray]) -> float:
    execution.run(ordered)
    return execution.total_ns / 1e6


def _measure(
    execution: Execution,
    ordered: list[np.ndarray],
    runs: int,
    progress: Callable[[int, int], None] | None,
) -> Samples:
    """Plain and profiled runs in turn; they are the same where no threads note what they do."""
    steps = len(execution.plan.steps)
    taken = Samples(
        np.zeros(runs), np.zeros(runs), np.zeros((runs, steps)), np.zeros((runs, steps)),
        np.zeros(runs), [],
    )  # fmt: skip
    for run in range(runs):
        taken.plain[run] = _one(execution, ordered)
        noting = execution.note_threads(True)
        taken.profiled[run] = _one(execution, ordered) if noting else taken.plain[run]
        begin = time.perf_counter()
        times = execution.times()
        taken.starts[run] = [t.start_ns / 1e6 for t in times]
        taken.ends[run] = [t.end_ns / 1e6 for t in times]
        taken.reading[run] = (time.perf_counter() - begin) * 1e3
        execution.note_threads(False)
        taken.variants = [t.variant for t in times]
        taken.times.append(times)
        if progress:
            progress(run + 1, runs)
    return taken


def median_interval(times: np.ndarray) -> float | None:
    """Half width of the 95 % confidence interval of the median of (runs,)."""
    return median_intervals(times[:, None])[0]


def median_intervals(times: np.ndarray) -> list[float] | list[None]:
    """`median_interval` of each column of (runs, columns), from order statistics (binomial, normal
    approximation: ranks n/2 ± 0.98·√n)."""
    n, columns = times.shape
    if n < FEWEST_RUNS:
        return [None] * columns
    ordered = np.sort(times, axis=0)
    low = max(0, math.floor(n / 2 - 0.98 * math.sqrt(n)))
    high = min(n - 1, math.ceil(n / 2 + 0.98 * math.sqrt(n)))
    found: list[float] = ((ordered[high] - ordered[low]) / 2).tolist()
    return found
