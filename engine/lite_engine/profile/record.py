"""What a profile says: the layers, their times and what was measured of the whole run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lite_messages import tr, trn

from .._deprecated import deprecated_name
from ..documents import Part, renamed
from ..errors import ModelFormatError
from ..runtime.answer import Answer
from ..runtime.shares import Share

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


#: No run takes thirty years.
_MOST_MS = 1e12


@dataclass
class LayerTime:
    """One row of a profile. Times are in ms.

    ci_ms              half width of the 95 % confidence interval of the median; None with fewer
                       than FEWEST_RUNS runs
    share              of the sum of all layers
    gflops, gbytes_per_s   from the operator's own cost
    roofline_fraction  of the attainable performance; above 1 the roofline is wrong
    bound_by           "compute" or "memory"
    instructions       executed in one run; under emulation only
    span_ms            start and end in the run whose time is nearest to the median
    threads_ms         what each thread computed in that run; the rest of its span it waited
    launches_ms        [queued, started, ended] of each launch and copy on an OpenCL queue, likewise
    copy               set for rows that only move data

    In shapes, None stands for what depends on data: one size, or the whole shape.
    """

    index: int
    name: str
    op: str
    sources: list[str]
    backend: str
    kernel: str
    why: str
    input_shapes: list[list[int | None] | None]
    output_shapes: list[list[int | None] | None]
    dtype: str
    median_ms: float
    min_ms: float
    p90_ms: float
    ci_ms: float | None
    share: float
    macs: int
    flops: int
    bytes: int
    weight_bytes: int
    gflops: float
    gbytes_per_s: float
    roofline_fraction: float | None = field(default=None, metadata=renamed("roof_fraction"))
    bound_by: str | None = None
    overhead: bool = False
    span_ms: list[float] = field(default_factory=lambda: [0.0, 0.0])
    threads_ms: list[float] = field(default_factory=list)
    launches_ms: list[list[float]] = field(default_factory=list)
    block: str = ""
    copy: dict[str, Any] | None = None
    instructions: int | None = None

    roof_fraction = deprecated_name("roof_fraction", "roofline_fraction")


@dataclass
class Compiled:
    """When kernels of a layer were compiled, in ms from the start of the first compilation."""

    name: str
    start_ms: float
    end_ms: float


@dataclass(repr=False)
class Profile(Answer):
    """Per-layer times of a model on a backend; `to_dict` is the JSON of `lite profile`.

    total_ms        median, min, mean, p90, p99 and max of runs without the profiler
    profiled_ms     median of the runs in which the layers were timed
    first_run_ms    planning, packing, compiling and one run
    warm_ms         the runs before the timed ones
    overhead_ms     reading the time stamps after a run; not part of the other times
    overhead_share  time of the clock reads as a share of the fastest run
    sum_ms          median, over the runs, of the sum of the layers
    unexplained_ms  the median of total_ms minus sum_ms
    rankable_us     layers whose medians are closer than this cannot be ranked; 0 when unknown
    shares          {backend: its share of the layers and of their time} (runtime/shares.py)
    instructions    {"run": executed in one run, "first_result": executed from the start of the
                    runner's process to its first result}, on one thread; only under emulation
    peak_memory_bytes   of the whole process so far
    memory          bytes by purpose, of the model only
    compiled        what was compiled before the first run
    busy            that the machine did other work meanwhile; empty where nothing shows it
    step_ms         what totals are rounded to where it did; 0: three significant digits
    """

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
    profiled_ms: float = 0.0
    warm_ms: list[float] = field(default_factory=list)
    rankable_us: float = 0.0
    memory: dict[str, int] = field(default_factory=dict)
    memory_map: dict[str, Any] = field(default_factory=dict)
    roofline: dict[str, Any] | None = field(default=None, metadata=renamed("roof"))
    warnings: list[str] = field(default_factory=list)
    samples_ms: list[float] = field(default_factory=list)
    times_meaningful: bool = True
    emulated: bool = False
    overhead_share: float = 0.0
    shares: dict[str, Share] = field(default_factory=dict)
    instructions: dict[str, int] | None = None
    compiled: list[Compiled] = field(default_factory=list)
    busy: str = ""
    step_ms: float = 0.0

    roof = deprecated_name("roof", "roofline")

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Profile:
        """The opposite of to_dict; keys of other versions are left out.

        Raises ModelFormatError for what `to_dict` did not make."""
        part = Part(data, "profile")
        _check_time(part["total_ms"]["median"])  # what every reader asks for
        if (step := part.get("step_ms")) is not None and step.number():
            _check_time(step, least=1e-9)
        if (counted := part.get("instructions")) is not None:
            counted["run"].integer()
        made = part.into(Profile)
        return made

    @property
    def headline(self) -> str:
        where = tr(
            "{model} on {backend} ({precision})",
            model=self.model, backend=self.backend, precision=self.precision,
        )  # fmt: skip
        if self.times_meaningful:
            total = f"{self.total_text} ms"
        elif self.instructions:
            total = tr("{count:,} instructions", count=self.instructions["run"])
        else:
            total = tr("times are not meaningful")
        said = trn(
            "{where}: {total} in {n} layer", "{where}: {total} in {n} layers", len(self.layers),
            where=where, total=total,
        )  # fmt: skip
        for slowest in self.slowest(1):
            share = f"{100 * slowest.share:.0f}"
            said += tr("; the slowest is {layer} with {share} %", layer=slowest.name, share=share)
        return said

    @property
    def total_text(self) -> str:
        """The median of the whole run in ms, no more exact than it can be told."""
        return rounded(self.total_ms["median"], self.step_ms)

    def table(self) -> tuple[list[str], list[list[Any]]]:
        """The slowest layers first."""
        heads = ["layer", "operator", "ms", "share", "backend", "kernel"]
        rows = self.slowest(len(self.layers))
        return heads, [
            [x.name, x.op, x.median_ms, f"{100 * x.share:.1f} %", x.backend, x.kernel] for x in rows
        ]

    def figure(self, kind: str = "latency") -> Figure:
        """A plotly Figure: "latency", "roofline", "types", "memory" or "timeline". Raises
        UsageError for another kind, or one without data; LiteError without plotly."""
        from ..figures import profiles

        return profiles.figure(self.to_dict(), kind)

    def slowest(self, count: int = 10) -> list[LayerTime]:
        """By time, under emulation by executed instructions."""
        if self.instructions:
            return sorted(self.layers, key=lambda x: -(x.instructions or 0))[:count]
        return sorted(self.layers, key=lambda x: -x.median_ms)[:count]


def _check_time(part: Part, least: float = 0.0) -> None:
    """Raises ModelFormatError for what no clock shows."""
    if not least <= part.number() < _MOST_MS:
        raise ModelFormatError(
            tr("expected a time in ms, found {ms}", ms=part.value), where=part.where
        )


def rounded(ms: float, step: float) -> str:
    """A time in three significant digits, or in steps of a power of ten, at least one of them."""
    if not step:
        return f"{ms:.3g}"
    return f"{max(round(ms / step), 1) * step:.{max(0, -round(math.log10(step)))}f}"
