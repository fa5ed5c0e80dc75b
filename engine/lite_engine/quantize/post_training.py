"""Static post-training quantisation from beginning to end.

prepare → equalise → calibrate → quantise (with corrected biases) → compare with the float parent
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import UsageError
from ..ir import Graph
from ._run import Run, reference_run
from .bias_correction import corrected_biases
from .calibrate import Calibration, Progress, Ranges, calibrate
from .equalize import equalize
from .guard import THRESHOLD_DB, Verdict, judge
from .observers import METHODS
from .prepare import prepare
from .rounding import adaptive_rounding, nearest, sum_preserving
from .samples import Feed, Samples, read_samples
from .scheme import Rounding, Scheme
from .select import conversions, integer_nodes
from .static import quantize_static

#: Of this many samples one is held back for the comparison, at most HELD_MAX.
HELD_EVERY = 5
HELD_MAX = 16
ROUNDINGS = ("nearest", "sums", "adaptive")


@dataclass(frozen=True)
class Options:
    """Plain choices; `to_dict` is enough to repeat a quantisation."""

    method: str = "mse"
    scheme: Scheme = field(default_factory=Scheme)
    equalize: bool = False
    bias_correction: bool = True
    rounding: str = "sums"
    threshold_db: float = THRESHOLD_DB
    limit: int | None = None

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise UsageError(f"method {self.method!r} is not one of {', '.join(METHODS)}")
        if self.rounding not in ROUNDINGS:
            raise UsageError(f"rounding {self.rounding!r} is not one of {', '.join(ROUNDINGS)}")

    def to_dict(self) -> dict[str, Any]:
        plain = {k: getattr(self, k) for k in ("method", "equalize", "bias_correction", "rounding",
                                               "threshold_db", "limit")}  # fmt: skip
        return {**plain, "scheme": self.scheme.to_dict()}

    @staticmethod
    def from_dict(data: dict[str, Any]) -> Options:
        return Options(**{**data, "scheme": Scheme.from_dict(data["scheme"])})


@dataclass
class Quantised:
    """`graph` is the QDQ form, `parent` the prepared float graph with the same value names.

    `graph` and `verdict` are None after a cancelled calibration, which `calibration` resumes.
    """

    parent: Graph
    calibration: Calibration
    options: Options
    graph: Graph | None = None
    ranges: Ranges | None = None
    verdict: Verdict | None = None
    held: list[Feed] = field(default_factory=list)
    biases: dict[str, np.ndarray] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        chosen, why = integer_nodes(self.parent, self.options.scheme.keep_float)
        dead = {n: d for n, s in self.calibration.statistics.items() if (d := s.dead_channels())}
        return {
            "options": self.options.to_dict(),
            "samples": self.calibration.samples,
            "ranges": self.ranges.to_dict() if self.ranges else None,
            "integer_nodes": sorted(chosen),
            "float_nodes": why,
            "conversions": [list(c) for c in conversions(self.parent, chosen)],
            "dead_channels": dead,
            "guard": self.verdict.to_dict() if self.verdict else None,
        }


class _HoldBack:
    """Passes samples on and keeps every fifth for the comparison."""

    def __init__(self, samples: Samples) -> None:
        self.samples = samples
        self.held: list[Feed] = []
        self.spare: list[Feed] = []

    def __len__(self) -> int:
        n = len(self.samples)
        return n - min(HELD_MAX, n // HELD_EVERY)

    def __iter__(self) -> Iterator[Feed]:
        self.held, self.spare = [], []
        for index, feed in enumerate(self.samples):
            if index % HELD_EVERY == HELD_EVERY - 1 and len(self.held) < HELD_MAX:
                self.held.append(feed)
                continue
            if len(self.spare) < 2:  # too few to hold any back: compare on what there is
                self.spare.append(feed)
            yield feed


def quantize(
    graph: Graph,
    source: Any,
    options: Options | None = None,
    *,
    run: Run = reference_run,
    progress: Progress | None = None,
    cancel: Callable[[], bool] | None = None,
    resume: Calibration | None = None,
    force: bool = False,
) -> Quantised:
    """An optimised float graph and samples → a quantised graph, compared with its parent.

    Raises CalibrationError when the samples cannot be used, or the result falls short of
    `options.threshold_db` and `force` is not set.
    """
    options = options or Options()
    parent = prepare(graph)
    if options.equalize:
        equalize(parent)
    samples = _HoldBack(read_samples(source, parent))
    calibration = calibrate(
        parent, Samples(samples, parent), run=run, progress=progress, cancel=cancel, resume=resume,
        limit=options.limit,
    )  # fmt: skip
    out = Quantised(parent, calibration, options)
    if calibration.cancelled:
        return out
    out.held = samples.held or samples.spare
    out.ranges = calibration.ranges(options.method)
    out.graph, out.biases = build(parent, calibration, options, samples, run)
    out.verdict = judge(
        parent, out.graph, out.held, run=run, threshold_db=options.threshold_db,
        keep_float=options.scheme.keep_float,
    )  # fmt: skip
    if not force:
        out.verdict.require()
    return out


def build(
    parent: Graph,
    calibration: Calibration,
    options: Options,
    samples: Any,
    run: Run = reference_run,
) -> tuple[Graph, dict[str, np.ndarray]]:
    """(QDQ graph of a prepared graph, its corrected float biases) from finished statistics."""
    rounding: Rounding = nearest if options.rounding == "nearest" else sum_preserving
    if options.rounding == "adaptive":
        rounding = adaptive_rounding(parent, samples, options.scheme, run=run)
    biases: dict[str, np.ndarray] = {}
    if options.bias_correction:
        biases = corrected_biases(parent, calibration.statistics, options.scheme, rounding)
    ranges = calibration.ranges(options.method)
    graph = quantize_static(parent, ranges, options.scheme, rounding=rounding, biases=biases)
    return graph, biases
