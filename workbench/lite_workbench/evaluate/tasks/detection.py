"""Object detection: COCO's mean average precision, with pycocotools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from lite_engine.errors import UsageError
from lite_messages import tr

from ..statistics import Measure
from . import _coco
from ._base import NOT_FINITE, ClassResult, Outcome, Task
from ._boxes import Found, answered, matched, pixels

if TYPE_CHECKING:
    from ...answers import Answer
    from ..dataset import Box, Dataset, Sample

#: Average precision needs unsure boxes, too; lower scores than this change it little.
LEAST_SCORE = 0.01
#: From this score on a box is told, and counts as right or wrong in the table of samples.
TOLD = 0.4


class Detection(Task):
    """A sample's label are boxes; `data` of an outcome are the `Found` boxes of known classes."""

    KIND = _coco.BOXES
    #: pycocotools and torchvision's CocoDetection know no EXIF: boxes are in the stored pixels.
    AS_STORED = True

    def __init__(self, dataset: Dataset, labels: Sequence[str], classes: int | None) -> None:
        super().__init__(dataset, labels, classes)
        self.categories = list(dataset.classes)
        self.by_name = {name.casefold(): i for i, name in enumerate(self.categories)}
        known = [n for n in self.categories if n.casefold() in {x.casefold() for x in labels}]
        if labels and not known and len(self.categories) > 1:
            raise UsageError(
                tr(
                    "the model's labels have none of the {categories} categories of "
                    "the data set, like {one!r}",
                    categories=len(self.categories),
                    one=self.categories[0],
                ),
                fix=tr("pass --labels FILE with the data set's names in the model's order"),
            )
        self.name = dataset.name
        self._require_objects(dataset.samples)

    def _counts(self, box: Box) -> bool:
        """Is it right to find this object, and wrong not to?"""
        return not box.ignored

    def _require_objects(self, samples: Sequence[Sample]) -> None:
        """Raises UsageError where no metric is defined."""
        if not any(self._counts(box) for sample in samples for box in sample.label):
            raise UsageError(
                tr("the labels contain no object that can be scored"),
                where=self.name, fix=tr("give samples with objects of these classes"),
            )  # fmt: skip

    def options(self) -> Mapping[str, Any]:
        return {"kind": "boxes", "threshold": LEAST_SCORE}

    def truth(self, sample: Sample) -> str:
        from ...answers import listed

        return listed([self.categories[b.category] for b in sample.label if not b.ignored])

    def _category(self, label: str, index: int | None) -> int | None:
        """The data set's number of a predicted class; None for a class that it does not have."""
        if not self.labels and len(self.categories) == 1:
            return 0
        if not self.labels and index is not None:
            return index if index < len(self.categories) else None
        return self.by_name.get(label.casefold())

    def outcome(self, sample: Sample, answer: Answer, picture: tuple[int, int] | None) -> Outcome:
        from ...answers import listed

        if answer.kind != "boxes" or picture is None:
            raise self.refuse(answer, tr("boxes in an image"))
        boxes = [
            self._found(category, pixels(box, picture), item, picture)
            for item, (label, index, box, _) in zip(answer.items, answered(answer), strict=True)
            if (category := self._category(label, index)) is not None
        ]
        told = [b for b in boxes if b.score >= TOLD]
        said = listed([self.categories[b.category] for b in told])
        best = max((b.score for b in boxes), default=None)
        return Outcome(said, best, matched(sample.label, told).f1, None, boxes)

    def no_answer(self, sample: Sample) -> Outcome:
        return Outcome(NOT_FINITE, None, matched(sample.label, []).f1, None, [])

    def _found(
        self, category: int, xywh: tuple[float, ...], item: Mapping[str, Any], picture: Any
    ) -> Found:
        """One item of an answer, in pixels."""
        x, y, width, height = xywh
        return Found(category, (x, y, width, height), float(item["score"]))

    def measures(self, samples: Sequence[Sample], outcomes: Sequence[Outcome]) -> list[Measure]:
        self._require_objects(samples)  # those with objects may have been unreadable
        found = _coco.evaluated(samples, [o.data for o in outcomes], self.categories, self.KIND)
        drawn = _coco.Resampling(found, self.KIND)
        return [
            Measure(name, value, drawn.of(name), draws=_coco.DRAWS)
            for name, value in _coco.figures(found, self.KIND).items()
            if np.isfinite(value)
        ]

    def classes(self, samples: Sequence[Sample], outcomes: Sequence[Outcome]) -> list[ClassResult]:
        found = _coco.evaluated(samples, [o.data for o in outcomes], self.categories, self.KIND)
        count = [
            sum(b.category == i and self._counts(b) for s in samples for b in s.label)
            for i in range(len(self.categories))
        ]
        return [
            ClassResult(name, count[i], {"AP": _coco.average_precision(found, i)})
            for i, name in enumerate(self.categories)
            if count[i]
        ]

    def export(
        self, samples: Sequence[Sample], outcomes: Sequence[Outcome]
    ) -> list[dict[str, Any]]:
        """COCO's results format; images are counted from 1 and categories from 1, both in the data
        set's order."""
        return _coco.results([o.data for o in outcomes])


TASK = Detection
