"""What a profile says: the layers, their times and what was measured of the whole run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..documents import Part
from ..runtime.answer import Answer
from ..runtime.shares import Share


@dataclass
class LayerTime:
    """One row. Times in ms; `ci_ms` is half the 95 % interval of the median (None with fewer than
    FEWEST_RUNS); `share` of the layers' sum; rates from the operator's own cost; `roof_fraction`
    how near its roof it comes (1 at best, None without a measured roof), `bound_by` which one.
    `instructions` were executed in one run (under emulation only). `span_ms` is start and end in
    the run nearest to the median. `copy` is set for rows that only move data. In shapes None stands
    for what depends on data: a size, or all of them."""

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
    roof_fraction: float | None = None
    bound_by: str | None = None
    overhead: bool = False
    span_ms: list[float] = field(default_factory=lambda: [0.0, 0.0])
    block: str = ""
    copy: dict[str, Any] | None = None
    instructions: int | None = None


@dataclass
class Profile(Answer):
    """Per-layer times of a model on a backend; `to_dict` is the JSON of `lite profile`.

    total_ms        median, min, mean, p90, p99, max of runs without the profiler
    profiled_ms     median of the runs that the layers were timed in
    first_run_ms    planning, packing, compiling and one run; warm_ms the runs before the timed ones
    overhead_ms     reading the clocks out, after a run; in neither number
    overhead_share  of the fastest run: the clock reads in it, one per step that the CPU times
    sum_ms, unexplained_ms   sum of the layers, and what total_ms has more (+) or less (−)
    rankable_us     two layers whose medians are closer than this cannot be ranked; 0: not known
    shares          backend → its share of the layers and of their time (runtime/shares.py)
    instructions             executed by one "run" and until the "first_result" from the start of
                             the runner's process, one thread; only under emulation
    peak_memory_bytes        of the whole process so far; `memory` splits what the model takes
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
    roof: dict[str, Any] | None = None
    warnings: list[str] = field(default_factory=list)
    samples_ms: list[float] = field(default_factory=list)
    times_meaningful: bool = True
    emulated: bool = False
    overhead_share: float = 0.0
    shares: dict[str, Share] = field(default_factory=dict)
    instructions: dict[str, int] | None = None

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Profile:
        """The opposite of to_dict; keys of other versions are left out.

        Raises ModelFormatError for what `to_dict` did not make."""
        part = Part(data, "profile")
        part["total_ms"]["median"].number()  # what every reader asks for
        made: Profile = part.into(Profile)
        return made

    def slowest(self, count: int = 10) -> list[LayerTime]:
        """By time, under emulation by executed instructions."""
        if self.instructions:
            return sorted(self.layers, key=lambda x: -(x.instructions or 0))[:count]
        return sorted(self.layers, key=lambda x: -x.median_ms)[:count]
