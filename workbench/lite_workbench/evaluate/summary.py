"""Outcomes of all samples → an Evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from lite_engine.errors import UsageError
from lite_messages import tr

from .evaluation import Evaluation
from .results import Change, Metric, SampleResult, SampleRow, SideResult
from .statistics import Measure, bootstrap_p, draws, interval, mcnemar, quantiles

if TYPE_CHECKING:
    from .dataset import Dataset, Sample
    from .pipeline_side import PipelineSide
    from .side import Side
    from .tasks._base import Outcome, Task

#: A difference with a p-value below this is more than chance explains.
SIGNIFICANT = 0.05


def summarize(
    task: Task,
    dataset: Dataset,
    samples: Sequence[Sample],
    outcomes: Sequence[Sequence[Outcome]],
    sides: Sequence[Side | PipelineSide],
) -> Evaluation:
    """`outcomes` has a list for each side, in the order of `samples`. Raises UsageError for a
    metric that the task does not have."""
    count = len(samples)
    measured = [_ordered(task.measures(samples, own), dataset.metric) for own in outcomes]
    drawn = [[draws(m, count) for m in own] for own in measured]
    results = [
        SideResult(
            side.name, side.version, side.backend, side.precision,
            [_metric(m, d, count) for m, d in zip(measures, values, strict=True)],
            task.classes(samples, own), task.confusion(samples, own),
        )
        for side, own, measures, values in zip(sides, outcomes, measured, drawn, strict=True)
    ]  # fmt: skip
    changes = [
        _change(
            (sides[0].name, sides[i].name), (measured[0][0], measured[i][0]),
            (drawn[0][0], drawn[i][0]), outcomes[0], outcomes[i],
        )
        for i in range(1, len(sides))
    ]  # fmt: skip
    rows = [
        SampleRow(
            sample.name, task.truth(sample),
            {side.name: SampleResult(o.prediction, o.score, o.value, o.right)
             for side, o in zip(sides, own, strict=True)},
        )
        for sample, own in zip(samples, zip(*outcomes, strict=True), strict=True)
    ]  # fmt: skip
    rows.sort(key=lambda row: row.order)
    return Evaluation(sides[0].title, dataset.name, dataset.task, count, results, changes, rows)


def _ordered(measures: list[Measure], first: str) -> list[Measure]:
    """The metric that was asked for before the others. Raises UsageError."""
    names = [m.name for m in measures]
    wanted = first.casefold()
    if wanted and wanted not in [name.casefold() for name in names]:
        raise UsageError(
            tr("{name!r} is not a metric of this task", name=first),
            fix=tr("choose from {metrics}", metrics=", ".join(names)),
        )
    return sorted(measures, key=lambda m: bool(wanted) and m.name.casefold() != wanted)


def _metric(measure: Measure, values: np.ndarray, samples: int) -> Metric:
    low, high = interval(measure, values, samples)
    return Metric(measure.name, measure.value, low, high, measure.higher_is_better)


def _change(
    names: tuple[str, str],
    measures: tuple[Measure, Measure],
    values: tuple[np.ndarray, np.ndarray],
    baseline: Sequence[Outcome],
    candidate: Sequence[Outcome],
) -> Change:
    low, high = quantiles(values[1] - values[0])
    before, after = (m.each for m in measures)
    if before is not None and after is not None:
        gains = after.astype(np.float64) - before
    else:
        gains = np.array([b.value - a.value for a, b in zip(baseline, candidate, strict=True)])
    if measures[0].hits and before is not None and after is not None:
        p, test = mcnemar(before, after), "McNemar"
    else:
        p, test = bootstrap_p(values[1] - values[0]), "paired bootstrap"
    return Change(
        *names, measures[0].name, measures[1].value - measures[0].value, low, high, p, test,
        p < SIGNIFICANT, measures[0].higher_is_better,
        sum(a.prediction != b.prediction for a, b in zip(baseline, candidate, strict=True)),
        int(np.sum(gains > 0)), int(np.sum(gains < 0)), len(gains),
    )  # fmt: skip
