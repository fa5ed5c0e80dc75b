"""Static post-training quantisation from beginning to end.

prepare → equalise → calibrate → quantise (with corrected biases) → compare with the float parent

The method "auto" tries every one of AUTO on the held-out samples (the statistics serve all) and
keeps the best. With a target the most sensitive layers go back to floats until the outputs reach
it, as far as the budgets of time (estimated, or measured by `latency`) and size allow; a `Curve`
gets the whole trade-off.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from lite_messages import tr

from ..errors import CalibrationError
from ..ir import Graph
from ._run import Latency, Run, reference_run
from .analyze import choose, output_errors, sensitivity, trade_off
from .bias_correction import corrected_biases
from .calibrate import Calibration, Calibrator, Progress, Ranges, calibrate
from .costs import Costs
from .curve import Curve
from .equalize import EQUALIZED, equalize
from .guard import Verdict, judge
from .learned import learn
from .options import Options
from .prepare import prepare
from .rounding import adaptive_rounding, nearest, remembered, sum_preserving
from .samples import Feed, HoldOut, Samples, read_samples
from .scheme import Rounding, Scheme
from .select import conversions, in_integers, integer_nodes, named_layers
from .smooth import smooth
from .static import quantize_static

#: What the method "auto" chooses from.
AUTO = ("mse", "kl", "hist", "minmax")
#: Samples that the choices are made on.
CHOICE_SAMPLES = 4


class Finished(NamedTuple):
    """The quantized graph in QDQ form, the ranges that it was made from, and how far its outputs
    are from the float parent's."""

    graph: Graph
    ranges: Ranges
    verdict: Verdict


@dataclass
class Quantized:
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
    rounding: str = ""  # what "auto" chose
    round_with: Rounding = field(default=sum_preserving, repr=False)  # the same
    points: list[dict[str, Any]] = field(default_factory=list)  # of the search for the targets
    missed: str = ""  # which target was not reached
    remedy: str = ""  # what would reach it
    latency: Latency | None = field(default=None, repr=False)  # measures the points' cost

    def finished(self) -> Finished:
        """What came of it. Raises CalibrationError after a cancelled calibration."""
        if self.graph is None or self.ranges is None or self.verdict is None:
            raise CalibrationError(tr("the calibration was cancelled"), fix=tr("resume it"))
        return Finished(self.graph, self.ranges, self.verdict)

    def to_dict(self) -> dict[str, Any]:
        chosen, why = integer_nodes(self.parent, self.options.scheme.keep_float)
        seen = self.calibration.statistics.items()
        dead = {n.removesuffix(EQUALIZED): d for n, s in seen if (d := s.dead_channels())}
        return {
            "options": self.options.to_dict(),
            "samples": self.calibration.samples,
            "tried_db": self.tried,
            "rounding": self.rounding,
            "trade_off": self.points,
            "missed": self.missed,
            "ranges": self.ranges.to_dict() if self.ranges else None,
            "integer_nodes": sorted(chosen),
            "float_nodes": why,
            "conversions": [list(c) for c in conversions(self.parent, chosen)],
            "dead_channels": dead,
            "guard": self.verdict.to_dict() if self.verdict else None,
        }


def quantize(
    graph: Graph,
    source: Any,
    options: Options | None = None,
    *,
    run: Run = reference_run,
    progress: Progress | None = None,
    cancel: Callable[[], bool] | None = None,
    resume: Calibration | None = None,
    calibrated: Callable[[Calibration], None] | None = None,
    calibrator: Calibrator | None = None,
    curve: Curve | None = None,
    latency: Latency | None = None,
    force: bool = False,
) -> Quantized:
    """An optimised float graph and samples → a quantised graph, compared with its parent.

    A `calibrator` makes the statistics elsewhere, of all samples that are not held out.
    `calibrated` is called with the calibration, whole or cancelled, before anything is made of it.
    With a `curve` all its points are evaluated that it does not hold yet; `latency` measures what
    `options.measure` names. Raises CalibrationError
    when the model is in integers already, the samples cannot be used, no point is as small as
    `options.max_bytes`, or, unless `force` is set, the result falls short of a target or of
    `options.threshold_db`.
    """
    options = options or Options()
    parent = prepare(graph)
    if in_integers(parent):
        raise CalibrationError(
            tr("the model is already quantized"),
            fix=tr("quantize the original float model"),
        )
    if options.scheme.keep_float:
        kept = named_layers(parent, options.scheme.keep_float)
        options = replace(options, scheme=replace(options.scheme, keep_float=kept))
    if options.equalize:
        equalize(parent)
    samples = HoldOut(read_samples(source, parent).keep())
    if options.equalize:
        smooth(parent, samples, options.scheme.keep_float, run=run)
    if calibrator is not None:
        calibration = calibrator(parent, samples, options.limit, progress)
    else:
        calibration = calibrate(parent, Samples(samples, parent), run=run, progress=progress,
                                cancel=cancel, resume=resume, limit=options.limit)  # fmt: skip
    if calibrated is not None:
        calibrated(calibration)
    out = Quantized(parent, calibration, options, latency=latency)
    if calibration.cancelled:
        return out
    out.held = samples.held or samples.spare
    rounding = remembered(_rounding(parent, options, samples, run))
    if options.bias_correction:
        scheme, statistics = options.scheme, calibration.statistics
        out.biases = corrected_biases(parent, statistics, scheme, rounding)
    out.rounding = "sums" if options.rounding in ("auto", "learned") else options.rounding
    _choose_method(out, rounding, run)
    rounding = _learned(out, rounding, samples, run)
    if options.searches or curve is not None:
        _choose_floats(out, rounding, run, curve)
    scheme = out.options.scheme
    assert out.ranges is not None
    out.round_with = rounding
    out.graph = quantize_static(parent, out.ranges, scheme, rounding=rounding, biases=out.biases)
    out.verdict = judge(
        parent, out.graph, out.held, run=run, threshold_db=options.threshold_db,
        keep_float=scheme.keep_float, held_out=bool(samples.held),
    )  # fmt: skip
    if not force:
        out.verdict.require()
        if out.missed:
            raise CalibrationError(out.missed, fix=out.remedy)
    return out


def _rounding(parent: Graph, options: Options, samples: Any, run: Run) -> Rounding:
    if options.rounding == "adaptive":
        return adaptive_rounding(parent, samples, options.scheme, run=run)
    return nearest if options.rounding == "nearest" else sum_preserving  # and where it is learned


def _learned(out: Quantized, rounding: Rounding, samples: Any, run: Run) -> Rounding:
    """The learned rounding where it is asked for, or where "auto" finds it better; `biases` are
    then its own."""
    options = out.options
    auto = options.method == "auto" and options.rounding == "auto"
    if not auto and options.rounding != "learned":
        return rounding
    assert out.ranges is not None
    found = learn(
        out.parent, out.ranges, samples, options.scheme, biases=out.biases, run=run,
        rounding=rounding,
    )  # fmt: skip
    biases = found.biases if options.bias_correction else out.biases
    if auto:
        out.tried["learned"] = _scorer(out, run)(out.ranges, found.rounding, biases)
        if out.tried["learned"] <= out.tried[out.ranges.method]:
            return rounding
    out.rounding, out.biases = "learned", biases
    return found.rounding


def _scorer(out: Quantized, run: Run) -> Callable[[Ranges, Rounding, dict], float]:
    """What tells the SQNR of the outputs, in dB, on some held-out samples."""
    feeds = out.held[:CHOICE_SAMPLES]
    wants = [run(out.parent, feed) for feed in feeds]
    outputs = [v.name for v in out.parent.outputs]

    def score(ranges: Ranges, rounding: Rounding, biases: dict[str, np.ndarray]) -> float:
        scheme = out.options.scheme
        graph = quantize_static(out.parent, ranges, scheme, rounding=rounding, biases=biases)
        return round(output_errors(graph, feeds, wants, run).sqnr_db(outputs), 3)

    return score


def _choose_method(out: Quantized, rounding: Rounding, run: Run) -> None:
    """Sets `ranges`; "auto" takes the method with the best outputs."""
    if out.options.method != "auto":
        out.ranges = out.calibration.ranges(out.options.method)
        return
    score = _scorer(out, run)
    made = {method: out.calibration.ranges(method) for method in AUTO}
    out.tried.update({m: score(ranges, rounding, out.biases) for m, ranges in made.items()})
    out.ranges = made[max(AUTO, key=out.tried.__getitem__)]


def _choose_floats(out: Quantized, rounding: Rounding, run: Run, curve: Curve | None) -> None:
    """Adds the most sensitive layers to `keep_float` until the targets are reached. A given curve
    is evaluated to its end."""
    assert out.ranges is not None
    options, feeds, known = out.options, out.held[:CHOICE_SAMPLES], curve or Curve()
    scheme = options.scheme
    aims = options.target_db is not None or options.target_top1 is not None
    known.begin(_options_of(scheme, out), out.ranges.to_dict())
    if "ranking" not in known.data:
        known.data["ranking"] = _ranking(out, rounding, run, feeds)
    names = known.data["ranking"]
    limit = np.inf
    for count in range(len(names) + 1):
        (point,) = trade_off(
            out.parent, out.ranges, scheme, names, feeds, run=run, counts=[count],
            done=known.points, latency=out.latency, biases=out.biases, rounding=rounding,
        )  # fmt: skip
        if count == 0:
            limit = (1 + options.float_budget) * point["cost"]
        elif curve is None and not choose([point], max_cost=limit, max_bytes=options.max_bytes):
            break  # floats only add to both
        own = Scheme.from_dict(point["scheme"])
        out.points.append({**point, "options": _options_of(own, out)})
        if len(out.points) > len(known.points):
            known.points.append(out.points[-1])
            known.save()
        if curve is None and aims and _cheapest(out.points, options, limit) is not None:
            break
    chosen = _cheapest(out.points, options, limit) if options.searches else out.points[0]
    if chosen is None:  # the best of what the budgets allow
        chosen = choose(out.points, max_cost=limit, max_bytes=options.max_bytes)
        if chosen is not None and aims:
            _tell_missed(out, chosen, (rounding, run, feeds, names))
    if chosen is None:
        least = min(p["size_bytes"] for p in out.points)
        raise CalibrationError(
            tr("the weights cannot be stored in {max_bytes} bytes", max_bytes=options.max_bytes),
            fix=tr("in int8 they take {least} bytes", least=least),
        )
    out.options = replace(options, scheme=Scheme.from_dict(chosen["scheme"]))


def _tell_missed(
    out: Quantized,
    best: dict[str, Any],
    given: tuple[Rounding, Run, list[Feed], list[str]],
) -> None:
    """Sets `missed` and `remedy`: the fewest floats that reach the targets, whatever they cost, are
    found by bisection (more floats are hardly ever less accurate)."""
    rounding, run, feeds, names = given
    options = out.options
    assert out.ranges is not None

    def point(count: int) -> dict[str, Any]:
        (found,) = trade_off(
            out.parent, out.ranges, options.scheme, names, feeds, run=run,  # type: ignore[arg-type]
            counts=[count], latency=out.latency, biases=out.biases, rounding=rounding,
        )  # fmt: skip
        return found

    low, high = len(out.points) - 1, len(names)
    reached = point(high)
    while high - low > 1:
        middle = (low + high) // 2
        found = point(middle)
        if choose([found], min_sqnr_db=options.target_db, min_top1=options.target_top1):
            high, reached = middle, found
        else:
            low = middle
    within = tr("{percent:g} % more time", percent=100 * options.float_budget)
    if options.max_bytes is not None:
        within = tr("{time} and {bytes} bytes", time=within, bytes=options.max_bytes)
    out.missed = tr(
        "the target of {aims} is not reached: {best} is the best within {budget}",
        aims=_figures(options.target_db, options.target_top1), best=_reached(best, options),
        budget=within,
    )  # fmt: skip
    if not choose([reached], min_sqnr_db=options.target_db, min_top1=options.target_top1):
        out.remedy = tr(
            "no version reaches it, {reached} is the best; lower the target, or pass --force to "
            "save it anyway", reached=_reached(reached, options),
        )  # fmt: skip
        return
    out.remedy = tr(
        "{reached} needs {count} of {layers} layers in float and {bytes} bytes of weights "
        "(--float-budget {cost:.2f}), or pass --force to save it anyway",
        reached=_reached(reached, options), count=high, layers=len(names),
        bytes=reached["size_bytes"],
        cost=reached["cost"] / (out.points[0]["cost"] or 1.0) - 1 + 0.005,
    )  # fmt: skip


def _reached(point: dict[str, Any], options: Options) -> str:
    """What a point has of what the targets ask for."""
    top1 = point["top1_agreement"] if options.target_top1 is not None else None
    return _figures(None if options.target_db is None else point["sqnr_db"], top1)


def _figures(db: float | None, top1: float | None) -> str:
    """25.2 dB and 98 % top-1 agreement"""
    agreement = "" if top1 is None else tr("{percent:g} % top-1 agreement", percent=100 * top1)
    if db is None:
        return agreement
    noise = f"{db:.4g} dB"
    return tr("{a} and {b}", a=noise, b=agreement) if agreement else noise


def _ranking(out: Quantized, rounding: Rounding, run: Run, feeds: list[Feed]) -> list[str]:
    """Layers by the noise that each makes in the outputs, for each unit of cost of its floats."""
    assert out.ranges is not None
    scheme, biases = out.options.scheme, out.biases
    found = sensitivity(
        out.parent, out.ranges, scheme, feeds, run=run, biases=biases, rounding=rounding
    )
    costs = Costs(out.parent, feeds[0] if feeds else {})

    def noise_by_cost(entry: dict[str, Any]) -> float:
        name, noise = entry["name"], 10 ** (-entry["output_sqnr_db"] / 10)
        return float(noise / max(costs.of(name, False) - costs.of(name, True), 1.0))

    found.sort(key=noise_by_cost, reverse=True)
    return [entry["name"] for entry in found]


def _cheapest(
    points: list[dict[str, Any]], options: Options, limit: float
) -> dict[str, Any] | None:
    """The cheapest point that reaches the targets within the budgets."""
    return choose(
        points, min_sqnr_db=options.target_db, min_top1=options.target_top1, max_cost=limit,
        max_bytes=options.max_bytes,
    )  # fmt: skip


def _options_of(scheme: Scheme, out: Quantized) -> dict[str, Any]:
    """What repeats a point, without a search."""
    assert out.ranges is not None
    own = replace(
        out.options, method=out.ranges.method, rounding=out.rounding, scheme=scheme,
        target_db=None, target_top1=None, max_bytes=None, float_budget=Options.float_budget,
    )  # fmt: skip
    return own.to_dict()
