"""Int8 within a budget of the task's own metric: `lite quantize --data DATASET --max-drop 0.5%`.

The judging samples are never those that calibrate. Layers go back to float, the most sensitive
first, in steps of twice as many, until the metric has lost no more than the budget; each step is
measured on the labeled data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lite_engine.errors import CalibrationError, UsageError
from lite_engine.quantize import (
    Quantized,
    Scheme,
    judge,
    quantize_static,
    sensitivity,
    trade_off,
)
from lite_engine.runtime import Predictor
from lite_messages import tr

from .cluster import Progress
from .evaluate import Dataset, Evaluation, Side
from .evaluate.judge import Judge
from .evaluate.remote import local
from .evaluate.results import limit_of, readable, with_unit
from .evaluate.run import collect, judge_for, run_samples
from .inputs import read_source
from .quantizing import FastRun, LatencyOn, model_from

if TYPE_CHECKING:
    import numpy as np
    from lite_engine.model_file import Model

    from .evaluate.judge import Unreadable
    from .evaluate.tasks._base import Outcome

#: How many layers, worst first, go back to float; then all.
STEPS = (0, 1, 2, 4, 8, 16, 32, 64)
#: Of a data set without a calibration set of its own, every fifth sample calibrates, at most these.
EVERY, MOST = 5, 100
#: Metrics that count samples.
COUNTED = ("top-1", "top-5", "exact match")
#: Samples that the ranking of layers is made on.
RANKED = 4


class Feeds:
    """Samples of a data set as feeds, read when they are used. Raises what `read_source` raises."""

    def __init__(self, model: Model, dataset: Dataset) -> None:
        self.model, self.samples = model, dataset.samples

    def __len__(self) -> int:
        return len(self.samples)

    def __iter__(self) -> Iterator[dict[str, np.ndarray]]:
        for sample in self.samples:
            with local(sample) as here:
                yield read_source(self.model, here.source)[0]


def split(dataset: Dataset, calibration: str | Path | None) -> tuple[Dataset | None, Dataset]:
    """(samples that calibrate, samples that judge). With a calibration set of its own the first is
    None, and what lies in that set does not judge. Raises UsageError when nothing is left."""
    if calibration is None:
        chosen = set(range(0, len(dataset), EVERY)[:MOST])
        parts: list[list[Any]] = [[], []]
        for number, sample in enumerate(dataset.samples):
            parts[number not in chosen].append(sample)
        if not parts[1]:
            raise UsageError(
                tr("expected at least 2 samples, some to calibrate and others to judge, found 1"),
                where=dataset.name,
            )
        return replace(dataset, samples=parts[0]), replace(dataset, samples=parts[1])
    seen = Path(calibration).resolve()
    rest = [s for s in dataset.samples if not _lies_in(s.source, seen)]
    if not rest:
        raise UsageError(
            tr("every sample of --data is among the calibration samples"),
            where=dataset.name,
            fix=tr(
                "leave out --calibration: one sample in five then calibrates, the others "
                "measure the loss"
            ),
        )
    return None, replace(dataset, samples=rest)


def _lies_in(source: Any, folder: Path) -> bool:
    if not isinstance(source, (str, Path)):
        return False
    own = Path(source).resolve()
    return own == folder or folder in own.parents


@dataclass
class Budget:
    """What the metric may lose, and what was measured. `steps` are (layers in float, loss, extra
    time as a share of the int8 version's, estimated or measured)."""

    metric: str
    limit: float
    loss: float
    samples: int
    reached: bool
    sentence: str
    steps: list[tuple[int, float, float]] = field(default_factory=list)


class WithinBudget:
    """The search. `judging` are labeled samples that did not calibrate, `calibrating` others of
    the same data set that do; `evaluation` is that of what was found, the side `version`."""

    def __init__(
        self,
        parent: Model,
        judging: Dataset,
        limit: float,
        *,
        calibrating: Dataset | None = None,
        labels: Sequence[str] | None = None,
        float_budget: float,
        latency: LatencyOn | None = None,
        progress: Progress = lambda done, total: None,
        version: str = "int8",
    ) -> None:
        self.parent, self.judging, self.limit, self.version = parent, judging, limit, version
        self.float_budget, self.latency, self.progress = float_budget, latency, progress
        self.calibrating = None if calibrating is None else Feeds(parent, calibrating)
        self.evaluation: Evaluation | None = None
        self.judge: Judge = judge_for(parent, judging, labels)
        self.baseline = Side("float", Predictor(parent), "float")
        self._float: list[list[Outcome] | Unreadable] | None = None

    def evaluate(self, model: Model) -> Evaluation:
        """The float version, which runs once, and another one."""
        if self._float is None:
            self._float = run_samples(self.judge, [self.baseline], self.judging, self.progress)
        side = Side(self.version, Predictor(model), self.version)
        own = run_samples(self.judge, [side], self.judging, self.progress)
        found = [
            [*a, *b] if isinstance(a, list) and isinstance(b, list) else a
            for a, b in zip(self._float, own, strict=True)
        ]
        return collect(self.judge, [self.baseline, side], self.judging, found)

    def search(self, made: Quantized) -> Budget:
        """Makes `made` the first step that is within the budgets of metric and time, or the best
        one."""
        assert made.ranges is not None
        scheme, base = made.options.scheme, 0.0
        names: list[str] | None = None
        best: tuple[float, Evaluation, frozenset[str]] | None = None
        steps: list[tuple[int, float, float]] = []
        for count in STEPS:
            if count and names is None:
                names = self._ranking(made)
            number = min(count, len(names or []))
            if steps and number == steps[-1][0]:
                break  # all are in float already
            (point,) = trade_off(
                made.parent, made.ranges, scheme, names or [], made.held[:1], run=FastRun(),
                counts=[number], biases=made.biases, rounding=made.round_with,
                latency=self.latency,
            )  # fmt: skip
            base = base or point["cost"]
            extra = point["cost"] / (base or 1.0) - 1
            keep = scheme.keep_float | frozenset((names or [])[:number])
            graph = quantize_static(
                made.parent, made.ranges, replace(scheme, keep_float=keep),
                rounding=made.round_with, biases=made.biases,
            )  # fmt: skip
            evaluation = self.evaluate(model_from(graph, self.parent))
            loss = loss_of(evaluation)
            steps.append((number, loss, extra))
            if extra <= self.float_budget and (best is None or loss < best[0]):
                best = loss, evaluation, keep
            if loss <= self.limit:
                break
        assert best is not None, "the first step costs nothing more"
        loss, evaluation, keep = best
        if keep != scheme.keep_float:
            _rebuild(made, replace(scheme, keep_float=keep))
        self.evaluation = evaluation
        return self._told(evaluation, loss, steps)

    def _ranking(self, made: Quantized) -> list[str]:
        """Layers by what their integers alone cost the outputs, worst first."""
        assert made.ranges is not None
        scheme = made.options.scheme
        found = sensitivity(
            made.parent, made.ranges, scheme, made.held[:RANKED], run=FastRun(),
            biases=made.biases, rounding=made.round_with,
        )  # fmt: skip
        return [row["name"] for row in found]

    def _told(
        self, evaluation: Evaluation, loss: float, steps: list[tuple[int, float, float]]
    ) -> Budget:
        name = evaluation.sides[1].main.name
        said = evaluation.changes[0].sentence
        reached = loss <= self.limit
        if few := too_few(name, self.limit, evaluation.samples):
            said += f"; {few}"
        if not reached:
            said += tr("; the budget is {limit}", limit=limit_of(name, self.limit))
            count, least, extra = min(steps, key=lambda step: step[1])
            if least <= self.limit:
                said += tr(
                    "; with {layers} layers in float it is met (--float-budget {extra:.2f})",
                    layers=count,
                    extra=extra + 0.005,
                )
            else:
                said += tr(
                    "; the smallest loss measured is {loss}, with {layers} layers in float",
                    loss=with_unit(name, least),
                    layers=count,
                )
        return Budget(name, self.limit, loss, evaluation.samples, reached, said, steps)


def too_few(metric: str, limit: float, samples: int) -> str:
    """What a budget cannot show on so few samples, or "": where samples are right or wrong, one of
    them is 1 / samples of the metric."""
    if metric not in COUNTED or not 0 < limit < 1 / samples:
        return ""
    return tr(
        "one of {samples} samples is {share} points of {metric}: so few cannot show a loss of "
        "{limit} points", samples=samples, share=readable(metric, 1 / samples), metric=metric,
        limit=readable(metric, limit),
    )  # fmt: skip


def loss_of(evaluation: Evaluation) -> float:
    """By how much the second side's main metric is worse; negative where it is better."""
    baseline, main = (side.main for side in evaluation.sides)
    change = baseline.value - main.value
    return change if main.higher_is_better else -change


def _rebuild(made: Quantized, scheme: Scheme) -> None:
    """The quantized graph with more layers in float, and its accuracy check."""
    assert made.ranges is not None
    made.options = replace(made.options, scheme=scheme)
    made.graph = quantize_static(
        made.parent, made.ranges, scheme, rounding=made.round_with, biases=made.biases
    )
    before = made.finished().verdict
    made.verdict = judge(
        made.parent, made.graph, made.held, run=FastRun(), threshold_db=before.threshold_db,
        keep_float=scheme.keep_float, held_out=before.held_out,
    )  # fmt: skip


def require(budget: Budget | None, made: Quantized) -> None:
    """Raises CalibrationError for a budget that is exceeded, or a target that was missed."""
    if made.missed:
        raise CalibrationError(made.missed, fix=made.remedy)
    if budget is not None and not budget.reached:
        raise CalibrationError(
            budget.sentence,
            fix=tr("raise --max-drop or --float-budget, use more calibration samples, or --force"),
        )
