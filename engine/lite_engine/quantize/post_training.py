"""Static post-training quantisation from beginning to end.

prepare → equalise → calibrate → quantise (with corrected biases) → compare with the float parent

The method "auto" tries every one of AUTO on the samples held back (the statistics serve all) and
keeps the best. With `target_db` the most sensitive layers go back to floats until the outputs reach
it, as far as `float_budget` allows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from ..errors import UsageError
from ..ir import Graph
from ._run import Run, reference_run
from .analyze import choose, mac_cost, output_errors, sensitivity, trade_off
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
#: What the method "auto" chooses from.
AUTO = ("mse", "kl", "hist", "minmax")
#: Samples that the choices are made on.
CHOICE_SAMPLES = 4
ROUNDINGS = ("nearest", "sums", "adaptive")


@dataclass(frozen=True)
class Options:
    """Plain choices; `to_dict` is enough to repeat a quantisation."""

    method: str = "auto"
    scheme: Scheme = field(default_factory=Scheme)
    equalize: bool = True
    bias_correction: bool = True
    rounding: str = "sums"
    threshold_db: float = THRESHOLD_DB
    target_db: float | None = None
    float_budget: float = 0.15  # extra cost that floats may make, as a share of the integers' own
    limit: int | None = None

    def __post_init__(self) -> None:
        if self.method not in ("auto", *METHODS):
            raise UsageError(f"method {self.method!r} is not one of auto, {', '.join(METHODS)}")
        if self.rounding not in ROUNDINGS:
            raise UsageError(f"rounding {self.rounding!r} is not one of {', '.join(ROUNDINGS)}")

    def to_dict(self) -> dict[str, Any]:
        own = {f.name: getattr(self, f.name) for f in fields(self)}
        return {**own, "scheme": self.scheme.to_dict()}

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
    tried: dict[str, float] = field(default_factory=dict)  # method → output SQNR in dB
    points: list[dict[str, Any]] = field(default_factory=list)  # of the search for target_db

    def to_dict(self) -> dict[str, Any]:
        chosen, why = integer_nodes(self.parent, self.options.scheme.keep_float)
        dead = {n: d for n, s in self.calibration.statistics.items() if (d := s.dead_channels())}
        return {
            "options": self.options.to_dict(),
            "samples": self.calibration.samples,
            "tried_db": self.tried,
            "trade_off": self.points,
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
    rounding = _rounding(parent, options, samples, run)
    if options.bias_correction:
        scheme, statistics = options.scheme, calibration.statistics
        out.biases = corrected_biases(parent, statistics, scheme, rounding)
    _choose_method(out, rounding, run)
    if options.target_db is not None:
        _choose_floats(out, rounding, run)
    scheme = out.options.scheme
    assert out.ranges is not None
    out.graph = quantize_static(parent, out.ranges, scheme, rounding=rounding, biases=out.biases)
    out.verdict = judge(
        parent, out.graph, out.held, run=run, threshold_db=options.threshold_db,
        keep_float=scheme.keep_float,
    )  # fmt: skip
    if not force:
        out.verdict.require()
    return out


def _rounding(parent: Graph, options: Options, samples: Any, run: Run) -> Rounding:
    if options.rounding == "adaptive":
        return adaptive_rounding(parent, samples, options.scheme, run=run)
    return nearest if options.rounding == "nearest" else sum_preserving


def _choose_method(out: Quantised, rounding: Rounding, run: Run) -> None:
    """Sets `ranges`; "auto" takes the method with the best outputs."""
    options = out.options
    if options.method != "auto":
        out.ranges = out.calibration.ranges(options.method)
        return
    feeds = out.held[:CHOICE_SAMPLES]
    wants = [run(out.parent, feed) for feed in feeds]
    outputs = [v.name for v in out.parent.outputs]
    best = -np.inf
    for method in AUTO:
        ranges = out.calibration.ranges(method)
        graph = quantize_static(
            out.parent, ranges, options.scheme, rounding=rounding, biases=out.biases
        )
        score = output_errors(graph, feeds, wants, run).sqnr_db(outputs)
        out.tried[method] = round(score, 3)
        if score > best:
            best, out.ranges = score, ranges


def _choose_floats(out: Quantised, rounding: Rounding, run: Run) -> None:
    """Adds the most sensitive layers to `keep_float` until `target_db` is reached."""
    assert out.ranges is not None
    options, feeds = out.options, out.held[:CHOICE_SAMPLES]
    scheme = options.scheme
    ranking = sensitivity(
        out.parent, out.ranges, scheme, feeds, run=run, biases=out.biases, rounding=rounding
    )
    # noise that a layer makes in the outputs, for each unit of cost that floats would add
    extra = {n.name: max(mac_cost(n, False) - mac_cost(n, True), 1.0) for n in out.parent.nodes}
    ranking.sort(key=lambda e: -(10 ** (-e["output_sqnr_db"] / 10)) / extra[e["name"]])
    names = [entry["name"] for entry in ranking]
    for count in range(len(names) + 1):
        points = trade_off(
            out.parent, out.ranges, scheme, names, feeds, run=run, counts=[count],
            biases=out.biases, rounding=rounding,
        )  # fmt: skip
        limit = (1 + options.float_budget) * (out.points or points)[0]["cost"]
        if points[0]["cost"] > limit:
            break
        out.points += points
        if points[0]["sqnr_db"] >= (options.target_db or 0):
            break
    best = max(out.points, key=lambda p: p["sqnr_db"])
    chosen = choose(out.points, min_sqnr_db=options.target_db) or best
    out.options = replace(options, scheme=Scheme.from_dict(chosen["scheme"]))
