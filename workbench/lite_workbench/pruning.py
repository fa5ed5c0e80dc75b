"""Pruning with measurements of this machine and, with labeled data, within a budget of the metric.

Layers whose sparse kernel is not faster here stay dense: their zeros would cost accuracy only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from lite_engine.display import Displayed
from lite_engine.errors import CalibrationError, UsageError
from lite_engine.profile import profile
from lite_engine.prune import Pruned, PruneOptions, Pruner
from lite_engine.prune.layers import LEVELS
from lite_engine.runtime import Predictor, host_target
from lite_messages import tr, trn

from .budget import STEPS, Budget, WithinBudget, loss_of
from .evaluate.results import limit_of
from .pruned_points import METHOD, TradeOff, Version, timed, trade_off
from .quantizing import FastRun, calibration, float_graph, model_from

if TYPE_CHECKING:
    from lite_engine.model_file import Model
    from plotly.graph_objects import Figure

    from .evaluate import Evaluation
    from .jobs import Work

#: Turns in which both forms of the layers are timed, and the runs of each turn.
TURNS, RUNS = 5, 4
#: Medians of the whole models, and the half widths of their 95 % intervals.
_LATENCY = ("dense_ms", "pruned_ms", "dense_ci_ms", "pruned_ci_ms")


@dataclass
class Gain:
    """A layer with many zeros: least milliseconds of its dense and its sparse form, in turns."""

    name: str
    dense_ms: float
    sparse_ms: float

    @property
    def times(self) -> float:
        return self.dense_ms / self.sparse_ms if self.sparse_ms else 1.0


@dataclass(repr=False)
class Pruning(Displayed):
    """A pruned model and what was measured: `gains` of layers that have sparse kernels here, and
    the median `latency` of the dense and the pruned model in turns, with its interval. `trade_off`
    is there where other shares were asked for."""

    made: Pruned
    gains: list[Gain] = field(default_factory=list)
    latency: dict[str, float | None] = field(default_factory=dict)
    budget: Budget | None = None
    trade_off: TradeOff | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.made.to_dict(),
            "gains": [asdict(g) for g in self.gains],
            "latency": self.latency,
            "budget": asdict(self.budget) if self.budget else None,
            "trade_off": self.trade_off.to_dict() if self.trade_off else None,
        }

    @property
    def headline(self) -> str:
        zeros = trn("{n} layer with zeros", "{n} layers with zeros", len(self.made.layers))
        return tr("{zeros}: {db:.1f} dB against the dense model", zeros=zeros, db=self.made.sqnr_db)

    def table(self) -> tuple[list[str], list[list[Any]]]:
        """A row per layer with zeros."""
        times = {g.name: g for g in self.gains}
        heads = [tr("layer"), tr("zeros, %"), tr("alone, dB"), tr("dense, ms"), tr("sparse, ms")]
        return heads, [
            [row["name"], f"{100 * row['zeros']:.0f}",
             "–" if row["sqnr_db"] is None else f"{row['sqnr_db']:.1f}",
             *(f"{times[row['name']].dense_ms:.3f} {times[row['name']].sparse_ms:.3f}".split()
               if row["name"] in times else ("–", "–"))]
            for row in self.made.layers
        ]  # fmt: skip

    def figure(self) -> Figure:
        """The trade-off as a plotly Figure. Raises UsageError without one, LiteError without
        plotly."""
        from .figures import trade_off_figure

        if self.trade_off is None:
            raise UsageError(
                tr("only one share was measured"),
                fix=tr("name others: session.prune(images, sparsity=0.8, also=[0.7, 0.9])"),
            )
        own = self.trade_off
        return trade_off_figure(self.headline, METHOD, own.points, own.dense, own.metric)


def prune(
    parent: Model,
    images: Any,
    options: PruneOptions,
    *,
    keep: Sequence[str] = (),
    measure: bool = True,
    within: WithinBudget | None = None,
    also: Sequence[float] = (),
    work: Work | None = None,
) -> tuple[Pruning, Model]:
    """The pruned version of a float Model. `images` are calibration samples; with `within` layers
    become whole again, those that cost most first, until the metric loses no more than its limit.
    `also` are other shares, of zeros or without these of channels: they and the first one make the
    trade-off. Raises UsageError, CalibrationError when no layer is left to prune."""
    if also and not measure:
        raise UsageError(
            tr("a trade-off needs the times of its versions"), fix=tr("leave out --no-measure")
        )
    graph = float_graph(parent)
    run = FastRun(before=work.heed) if work else FastRun()
    pruner = Pruner(
        graph, calibration(graph, images), options, keep=keep, run=run,
        progress=work.progress if work else lambda done, total: None,
    )  # fmt: skip
    others = [pruner.at(share) for share in sorted({*also} - {pruner.share})]
    gains = layer_gains(parent, pruner) if measure else []
    slow = _not_worth_it(pruner, gains) if measure else {}
    if within is None:
        made, budget = pruner.make(slow), None
    else:
        made, budget = _search(pruner, slow, parent, within)
    model = model_from(made.graph, parent)
    found = Pruning(made, [g for g in gains if g.name not in slow], budget=budget)
    if not measure:
        return found, model
    versions = [Version(pruner.share, made, model)]
    skipped: dict[str, str] = {}
    for other in others:
        try:
            own = other.make(_not_worth_it(other, layer_gains(parent, other)))
        except CalibrationError as error:  # nothing is left to prune
            skipped[f"{other.share:g}"] = f"{error.what}: {error.fix}" if error.fix else error.what
        else:
            versions.append(Version(other.share, own, model_from(own.graph, parent)))
    feeds = pruner.feeds if also else pruner.feeds[:1]
    times = timed(parent, versions, feeds)
    dense, pruned = times[:2]
    values = (dense.latency_ms, pruned.latency_ms, dense.interval_ms, pruned.interval_ms)
    found.latency = dict(zip(_LATENCY, values, strict=True))
    if also:
        found.trade_off = trade_off(parent, versions, feeds, times, within, skipped)
    return found, model


def _not_worth_it(pruner: Pruner, gains: Sequence[Gain]) -> dict[str, str]:
    """Layers whose zeros gain nothing on this machine → why; none where the pattern has too few
    zeros for any sparse kernel, and is for other runtimes."""
    if pruner.pattern.share is not None:
        return {}
    times = {g.name: g.times for g in gains}
    slow = {n: tr("it has no sparse kernel here") for n in pruner.candidates if n not in times}
    return slow | {
        name: tr("its sparse form is not faster here ({times:.2f} times)", times=gain)
        for name, gain in times.items() if gain < 1
    }  # fmt: skip


def layer_gains(parent: Model, pruner: Pruner) -> list[Gain]:
    """Both forms of each layer that would have sparse kernels on this machine's CPU, with zeros in
    the smallest weights."""
    share = pruner.sparsity
    if share is None or pruner.pattern.share is not None:
        return []
    sparse = pruner.graph.copy()
    for name in pruner.candidates:
        weight = sparse.node(name).inputs[1]
        assert weight is not None and weight.const is not None
        size = np.abs(weight.const)
        zeros = max(share, LEVELS[0])
        most = np.quantile(size, zeros, method="inverted_cdf")  # not one zero too few
        kept = np.where(size > most, weight.const, np.float32(0))
        sparse.node(name).set_input(1, sparse.constant(kept, sparse.unique(f"{name}.zeros")))
    both = [Predictor(model_from(g, parent), host_target()) for g in (pruner.graph, sparse)]
    least: list[dict[str, float]] = [{}, {}]
    kernels: dict[str, str] = {}
    for _ in range(TURNS):
        for own, predictor in zip(least, both, strict=True):
            found = profile(predictor, pruner.feeds[0], runs=RUNS, warmup=1, roof=False)
            for row in found.layers:
                own[row.name] = min(own.get(row.name, np.inf), row.min_ms)
                kernels[row.name] = row.kernel
    return [
        Gain(name, least[0][name], least[1][name])
        for name in pruner.candidates
        if name in least[0] and "sparse" in kernels.get(name, "")
    ]


def _search(
    pruner: Pruner, slow: Mapping[str, str], parent: Model, within: WithinBudget
) -> tuple[Pruned, Budget]:
    """The first step within the budget of the metric, or the one that loses least."""
    names: list[str] = []
    best: tuple[float, Evaluation, Pruned] | None = None
    steps: list[tuple[int, float, float]] = []
    for count in STEPS:
        if count and not names:
            names = [n for n in pruner.ranking() if n not in slow]
        number = min(count, len(names)) if count else 0
        if steps and number == steps[-1][0]:
            break
        why = dict.fromkeys(names[:number], tr("the budget of the metric"))
        try:
            made = pruner.make({**slow, **why})
        except CalibrationError:
            if best is None:
                raise
            break  # nothing is left to prune
        evaluation = within.evaluate(model_from(made.graph, parent))
        loss = loss_of(evaluation)
        steps.append((number, loss, 0.0))
        if best is None or loss < best[0]:
            best = loss, evaluation, made
        if loss <= within.limit:
            break
    assert best is not None
    loss, evaluation, made = best
    within.evaluation = evaluation
    name, said = evaluation.sides[1].main.name, evaluation.changes[0].sentence
    reached = loss <= within.limit
    if not reached:
        said += tr("; the budget is {limit}", limit=limit_of(name, within.limit))
    return made, Budget(name, within.limit, loss, evaluation.samples, reached, said, steps)


def require(found: Pruning) -> None:
    """Raises CalibrationError for a budget that is exceeded, or outputs that are too far off."""
    if found.budget is None:
        found.made.require()
    elif not found.budget.reached:
        raise CalibrationError(
            found.budget.sentence,
            fix=tr("prune less, raise --max-drop, train the model while it is pruned, or --force"),
        )


def speed_note(found: Pruning) -> str:
    """Where the zeros pay on this machine, in one sentence; "" where nothing was measured."""
    if not found.latency:
        return ""
    faster = len(found.gains)
    dense, pruned, *noise = (found.latency[key] or 0.0 for key in _LATENCY)
    told = tr(
        "on this machine's CPU {dense:.2f} ms dense, {pruned:.2f} ms pruned ({times:.2f} times)",
        dense=dense, pruned=pruned, times=dense / pruned if pruned else 1.0,
    )  # fmt: skip
    if abs(dense - pruned) <= sum(noise):
        told += tr("; the difference is within the noise of the measurement")
    if found.made.layers and not faster:
        told += tr(
            "; no layer has a sparse kernel that is faster here: they need {least:.0f} % zeros",
            least=100 * LEVELS[0],
        )
    return told
