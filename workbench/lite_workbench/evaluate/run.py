"""Samples × sides → outcomes → an Evaluation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from lite_engine.adapter import Adapter
from lite_engine.errors import LiteError, UsageError
from lite_messages import tr

from ..blas import one_blas_thread
from ..cluster import Cluster, Progress
from ..inputs import GUESSED, is_picture
from .evaluation import Evaluation
from .judge import Judge, Unreadable
from .pipeline_side import PipelineSide
from .shards import run_on_cluster
from .side import Side
from .summary import summarize
from .tasks import task_class

if TYPE_CHECKING:
    from lite_engine.model_file import Model
    from lite_engine.pipeline import Pipeline

    from .dataset import Dataset
    from .tasks._base import Outcome


def judge_for(
    model: Model,
    dataset: Dataset,
    labels: Sequence[str] | None = None,
    adapter: Adapter | None = None,
) -> Judge:
    """Binds the data set's task to a model. Raises UsageError when their classes do not fit."""
    own = list(model.metadata.get("labels", ()) if labels is None else labels)
    return _judge(dataset, own, class_count(model), adapter)


def judge_of(
    side: Side | PipelineSide,
    dataset: Dataset,
    labels: Sequence[str] | None = None,
    adapter: Adapter | None = None,
) -> Judge:
    """`judge_for` what is evaluated. Raises UsageError."""
    if isinstance(side, Side):
        return judge_for(side.model, dataset, labels, adapter)
    own = side.labels if labels is None else list(labels)
    return _judge(dataset, own, _only_count(side.pipeline) or side.classes, adapter)


def _only_count(pipeline: Pipeline) -> int | None:
    """The number of classes of a pipeline of one model."""
    return class_count(pipeline.parts[0].model) if len(pipeline.parts) == 1 else None


def _judge(dataset: Dataset, own: list[str], classes: int | None, adapter: Adapter | None) -> Judge:
    task = task_class(dataset.task)(dataset, own, classes)
    return Judge(task, own, task.options(), adapter)


def class_count(model: Model) -> int | None:
    """How many scores the only output has for each input, where the graph says so."""
    if len(model.graph.outputs) != 1:
        return None
    dims = (model.graph.outputs[0].shape or ())[1:]
    fixed = [d for d in dims if isinstance(d, int)]
    return math.prod(fixed) if fixed and len(fixed) == len(dims) else None


def evaluate(
    sides: Sequence[Side | PipelineSide],
    dataset: Dataset,
    *,
    labels: Sequence[str] | None = None,
    limit: int | None = None,
    adapter: Adapter | None = None,
    progress: Progress = lambda done, total: None,
    cluster: Cluster | None = None,
) -> Evaluation:
    """The metrics of each side on the same samples, with intervals; the first side is the one that
    the others are compared with. `labels` and `adapter` replace the model's own. On a `cluster` the
    samples run in shards, with the same result.

    Samples that cannot be read are left out and listed. Raises UsageError when the data set does
    not fit the model or no sample can be read, LiteError when a side cannot run.
    """
    check_packages()
    chosen = dataset.first(limit)
    judge = judge_of(sides[0], chosen, labels, adapter)
    if cluster is not None and cluster.used:
        models = [side for side in sides if isinstance(side, Side)]
        if len(models) < len(sides):
            raise UsageError(tr("a pipeline is evaluated in this process, without workers"))
        found = run_on_cluster(cluster, judge, models, chosen, progress)
    else:
        found = run_samples(judge, sides, chosen, progress)
    return collect(judge, sides, chosen, found)


def check_packages() -> None:
    """Raises LiteError when the libraries of metrics are not installed."""
    for name in ("sklearn", "scipy", "pycocotools", "rapidfuzz", "skimage"):
        if find_spec(name) is None:
            raise LiteError(
                tr("evaluating needs the package {name}, which is not installed", name=name),
                command="pip install 'lite-workbench[evaluate]'",
            )


def run_samples(
    judge: Judge, sides: Sequence[Side | PipelineSide], dataset: Dataset, progress: Progress
) -> list[list[Outcome] | Unreadable]:
    """The outcomes of each sample on each side, in the data set's order."""
    found = []
    with one_blas_thread():
        for number, sample in enumerate(dataset.samples, 1):
            found.append(judge.outcomes(sides, sample))
            progress(number, len(dataset))
    return found


def collect(
    judge: Judge,
    sides: Sequence[Side | PipelineSide],
    dataset: Dataset,
    found: Sequence[list[Outcome] | Unreadable],
) -> Evaluation:
    """Outcomes in the order of the samples → the Evaluation. Raises UsageError."""
    unreadable = [o for o in found if isinstance(o, Unreadable)]
    good = [(s, o) for s, o in zip(dataset.samples, found, strict=True) if isinstance(o, list)]
    if not good:
        first = unreadable[0]
        raise UsageError(
            tr(
                "no sample of {count} can be read (the first: {error})",
                count=len(found),
                error=first.error,
            ),
            where=dataset.name,
        )
    samples = [sample for sample, _ in good]
    outcomes = [[row[i] for _, row in good] for i in range(len(sides))]
    made = summarize(judge.task, dataset, samples, outcomes, sides)
    made.predictions = {
        side.name: judge.task.export(samples, own)
        for side, own in zip(sides, outcomes, strict=True)
    }
    made.sources = {sample.name: sample.source for sample in samples}
    made.judge = judge
    made.unreadable = [(u.name, u.error) for u in unreadable]
    guessed = is_picture(samples[0].source) and sides[0].guessed
    made.notes = [GUESSED] if guessed else []
    return made
