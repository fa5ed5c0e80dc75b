"""What every task does with the answers: one outcome for each sample, metrics over all."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lite_engine.errors import LiteError
from lite_messages import tr

if TYPE_CHECKING:
    from ...answers import Answer
    from ..dataset import Dataset, Sample
    from ..statistics import Measure


#: What stands in place of a prediction when the outputs hold NaN.
NOT_FINITE = tr("no finite values")


@dataclass(frozen=True)
class Outcome:
    """One sample on one side. `value` is how good the answer is, 0…1; `right` is None where a task
    knows no right or wrong; `data` is what the task's metrics need, plain and small."""

    prediction: str
    score: float | None
    value: float
    right: bool | None = None
    data: Any = None


@dataclass
class ClassResult:
    """One class: how many samples (or objects, or pixels) it has, and its own metrics."""

    name: str
    count: int
    metrics: dict[str, float] = field(default_factory=dict)


class UnreadableLabel(LiteError):
    """The label of a sample cannot be read; the sample is left out."""


class Task(ABC):
    """Bound to a data set and a model's labels; plain data, so that workers can have it."""

    #: Do labels count the pixels of a file as it stores them, whatever its EXIF orientation says?
    AS_STORED = False

    def __init__(self, dataset: Dataset, labels: Sequence[str], classes: int | None) -> None:
        """`labels` are the model's own, `classes` is the number of its classes where known.
        Raises UsageError when the data set's classes are not the model's."""
        self.labels = list(labels)
        self.dataset_classes = list(dataset.classes)

    def options(self) -> Mapping[str, Any]:
        """What `answer` is told where the model's adapter says nothing."""
        return {}

    @abstractmethod
    def truth(self, sample: Sample) -> str:
        """The label, as a person reads it."""

    @abstractmethod
    def outcome(self, sample: Sample, answer: Answer, picture: tuple[int, int] | None) -> Outcome:
        """`picture` is the image's (width, height). Raises LiteError where the outputs are not an
        answer to this task, UnreadableLabel."""

    def no_answer(self, sample: Sample) -> Outcome:
        """The outcome of a sample whose outputs hold NaN: the worst there is. Raises LiteError
        where a task has none."""
        raise LiteError(tr("the outputs hold NaN"), where=sample.name)

    @abstractmethod
    def measures(self, samples: Sequence[Sample], outcomes: Sequence[Outcome]) -> list[Measure]:
        """The metrics, the main one first."""

    def classes(self, samples: Sequence[Sample], outcomes: Sequence[Outcome]) -> list[ClassResult]:
        """A row for each class of the data set."""
        return []

    def confusion(
        self, samples: Sequence[Sample], outcomes: Sequence[Outcome]
    ) -> list[tuple[str, str, int]]:
        """(label, prediction, how often) of what was confused, most often first."""
        return []

    def export(
        self, samples: Sequence[Sample], outcomes: Sequence[Outcome]
    ) -> list[dict[str, Any]]:
        """What was predicted, as --predictions writes it."""
        return [
            {"sample": s.name, "prediction": o.prediction, "score": o.score}
            for s, o in zip(samples, outcomes, strict=True)
        ]

    def refuse(self, answer: Answer, wanted: str) -> LiteError:
        names = {"top": tr("class scores"), "text": tr("a line of text"), "boxes": tr("boxes")}
        found = names.get(answer.kind, tr("plain values"))
        return LiteError(
            tr(
                "the outputs are read as {found}, but the data set needs {wanted}",
                found=found,
                wanted=wanted,
            ),
            fix=tr("choose a data set of the model's task, or pass --adapter"),
        )
