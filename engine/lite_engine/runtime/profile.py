"""Where the time goes: every layer timed in every run, reconciled with the total.

Time-stamps are always taken (one clock read per step), so a profiled run is an ordinary run; what
reading them out costs is measured and given as `overhead_ms`.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from ..plan import Plan, Step
from .environment import environment, peak_rss_bytes
from .predictor import Predictor

WARMUP_RUNS = 3


@dataclass
class LayerTime:
    """One row. Times in ms; `share` of the layers' sum; rates from the operator's own cost."""

    index: int
    name: str
    op: str
    sources: list[str]
    backend: str
    kernel: str
    why: str
    input_shapes: list[list[int]]
    output_shapes: list[list[int]]
    dtype: str
    median_ms: float
    min_ms: float
    p90_ms: float
    ci95_ms: float
    share: float
    macs: int
    flops: int
    bytes: int
    gflops: float
    gbytes_per_s: float
    overhead: bool = False


@dataclass
class Profile:
    """Per-layer times of a model on a backend; `to_dict` is the JSON of DESIGN section 4."""

    model: str
    backend: str
    device: str
    threads: int
    environment: dict[str, Any]
    total_ms: dict[str, float]
    first_run_ms: float
    layers: list[LayerTime]
    overhead_ms: float
    peak_memory_bytes: int
    runs: int = 0
    precision: str = "fp32"
    sum_ms: float = 0.0
    unexplained_ms: float = 0.0
    memory: dict[str, int] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    samples_ms: list[float] = field(default_factory=list)
    times_meaningful: bool = True

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def to_json(self, **options: Any) -> str:
        return json.dumps(self.to_dict(), **options)

    def to_dataframe(self) -> Any:
        """The layers as a pandas DataFrame (needs the `lab` extra)."""
        import pandas as pd

        return pd.DataFrame([asdict(x) for x in self.layers])

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Profile:
        rows = [LayerTime(**row) for row in data["layers"]]
        return Profile(**{**data, "layers": rows})

    def slowest(self, count: int = 10) -> list[LayerTime]:
        return sorted(self.layers, key=lambda x: -x.median_ms)[:count]


def profile(
    predictor: Predictor,
    feeds: Mapping[str, Any],
    *,
    runs: int = 20,
    warmup: int = WARMUP_RUNS,
    progress: Callable[[int, int], None] | None = None,
    device: str = "local",
) -> Profile:
    """Runs the model and times every layer. `progress(done, total)` may raise to cancel.

    Raises ShapeError when the feeds do not fit.
    """
    arrays = predictor.check_feeds(feeds)
    ordered = [arrays[n] for n in predictor.input_names]
    begin = time.perf_counter()
    execution = predictor.execution({n: a.shape for n, a in arrays.items()})
    execution.tap(())
    execution.run(ordered)
    first_ms = (time.perf_counter() - begin) * 1e3
    for _ in range(max(0, warmup - 1)):
        execution.run(ordered)
    samples = np.zeros((runs, len(execution.plan.steps)))
    totals, reading = np.zeros(runs), np.zeros(runs)
    variants: list[str] = []
    for run in range(runs):
        execution.run(ordered)
        totals[run] = execution.total_ns / 1e6
        start = time.perf_counter()
        times = execution.times()
        samples[run] = [(t.end_ns - t.start_ns) / 1e6 for t in times]
        reading[run] = (time.perf_counter() - start) * 1e3
        variants = [t.variant for t in times]
        if progress:
            progress(run + 1, runs)
    layers = _rows(execution.plan, samples, variants)
    total = {
        "median": float(np.median(totals)),
        "min": float(totals.min()),
        "p90": float(np.percentile(totals, 90)),
    }
    sum_ms = float(np.median(samples.sum(axis=1)))
    out = Profile(
        predictor.model.name,
        predictor.backend,
        device,
        predictor.threads,
        environment(),
        total,
        first_ms,
        layers,
        float(np.median(reading)),
        peak_rss_bytes(),
        runs,
        predictor.precision,
        sum_ms,
        total["median"] - sum_ms,
        execution.memory(),
        samples_ms=totals.tolist(),
    )
    out.warnings = _warnings(out)
    return out


def _rows(plan: Plan, samples: np.ndarray, variants: list[str]) -> list[LayerTime]:
    medians = np.median(samples, axis=0)
    whole = float(medians.sum()) or 1.0
    return [
        _row(plan, step, samples[:, i], variants[i], float(medians[i]) / whole)
        for i, step in enumerate(plan.steps)
    ]


def _row(plan: Plan, step: Step, times: np.ndarray, variant: str, share: float) -> LayerTime:
    median = float(np.median(times))
    seconds = median / 1e3
    shapes = [
        [list(plan.tensors[i].shape) for i in ports if i >= 0]
        for ports in (step.inputs, step.outputs)
    ]
    first = plan.tensors[step.outputs[0]]
    return LayerTime(
        step.index,
        step.name,
        step.op,
        list(step.sources),
        step.backend,
        variant,
        step.why,
        shapes[0],
        shapes[1],
        str(first.dtype),
        median,
        float(times.min()),
        float(np.percentile(times, 90)),
        _median_interval(times),
        share,
        step.macs,
        step.flops,
        step.bytes,
        step.flops / seconds / 1e9 if seconds else 0.0,
        step.bytes / seconds / 1e9 if seconds else 0.0,
        step.is_overhead,
    )


def _median_interval(times: np.ndarray) -> float:
    """Half width of the 95 % confidence interval of the median, from order statistics
    (binomial, normal approximation: ranks n/2 ± 0.98·√n)."""
    n = len(times)
    if n < 6:
        return float(times.max() - times.min()) / 2
    ordered = np.sort(times)
    low = max(0, math.floor(n / 2 - 0.98 * math.sqrt(n)))
    high = min(n - 1, math.ceil(n / 2 + 0.98 * math.sqrt(n)))
    return float(ordered[high] - ordered[low]) / 2


def _warnings(result: Profile) -> list[str]:
    out = []
    median, p90 = result.total_ms["median"], result.total_ms["p90"]
    if median > 0 and p90 > 1.25 * median:
        out.append(
            f"noisy: one run in ten took {p90 / median:.2f} times the median; "
            "close layers cannot be ranked"
        )
    if median > 0 and abs(result.unexplained_ms) > 0.05 * median:
        out.append(
            f"the layers add up to {result.sum_ms:.3f} ms, the run takes {median:.3f} ms: "
            f"{result.unexplained_ms:.3f} ms go to handing data in and out"
        )
    return out
