"""Top-1, top-5, the confusion matrix, and, with scikit-learn, precision and recall per class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..classes import class_numbers
from ..statistics import Measure, share
from ._base import NOT_FINITE, ClassResult, Outcome, Task

if TYPE_CHECKING:
    from ...answers import Answer
    from ..dataset import Dataset, Sample

TOP = 5


class Classification(Task):
    """A sample's label is a class number; `data` of an outcome has the best classes' numbers."""

    def __init__(self, dataset: Dataset, labels: Sequence[str], classes: int | None) -> None:
        super().__init__(dataset, labels, classes)
        self.numbers = class_numbers(dataset, labels, classes)
        self.top_5 = classes is None or classes > TOP

    def options(self) -> Mapping[str, Any]:
        return {"kind": "top", "top": TOP}

    def _name(self, number: int) -> str:
        if number < len(self.labels):
            return self.labels[number]
        known = {v: self.dataset_classes[k] for k, v in self.numbers.items()}
        return known.get(number, str(number)) if self.dataset_classes else str(number)

    def number(self, sample: Sample) -> int:
        """The model's class number of a sample."""
        return int(self.numbers.get(sample.label, sample.label))

    def truth(self, sample: Sample) -> str:
        return self._name(self.number(sample))

    def outcome(self, sample: Sample, answer: Answer, picture: tuple[int, int] | None) -> Outcome:
        if answer.kind != "top":
            raise self.refuse(answer, "class scores")
        best = [item["index"] for item in answer.items]
        right = best[0] == self.number(sample)
        return Outcome(self._name(best[0]), answer.items[0]["score"], float(right), right, best)

    def no_answer(self, sample: Sample) -> Outcome:
        return Outcome(NOT_FINITE, None, 0.0, False, [-1])

    def measures(self, samples: Sequence[Sample], outcomes: Sequence[Outcome]) -> list[Measure]:
        made = [share("top-1", [bool(o.right) for o in outcomes])]
        if self.top_5:
            among = [self.number(s) in o.data for s, o in zip(samples, outcomes, strict=True)]
            made.append(share("top-5", among))
        return made

    def classes(self, samples: Sequence[Sample], outcomes: Sequence[Outcome]) -> list[ClassResult]:
        from sklearn.metrics import precision_recall_fscore_support

        wanted = [self.number(s) for s in samples]
        there = sorted(set(wanted))
        figures = precision_recall_fscore_support(
            wanted, [o.data[0] for o in outcomes], labels=there, zero_division=0.0
        )
        return [
            ClassResult(self._name(n), int(count),
                        {"precision": float(p), "recall": float(r), "f1": float(f)})
            for n, p, r, f, count in zip(there, *figures, strict=True)
        ]  # fmt: skip

    def confusion(
        self, samples: Sequence[Sample], outcomes: Sequence[Outcome]
    ) -> list[tuple[str, str, int]]:
        pairs = Counter(
            (self.truth(s), o.prediction) for s, o in zip(samples, outcomes, strict=True)
        )
        wrong = [(a, b, n) for (a, b), n in pairs.items() if a != b]
        return sorted(wrong, key=lambda row: (-row[2], row[0], row[1]))


TASK = Classification
