"""Keypoints: COCO's mean average precision by object keypoint similarity, with pycocotools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lite_engine.errors import LiteError, UsageError
from lite_messages import tr

from . import _coco
from ._base import Outcome
from ._boxes import Found
from .detection import LEAST_SCORE, Detection

if TYPE_CHECKING:
    from ...answers import Answer
    from ..dataset import Box, Dataset, Sample


class Keypoints(Detection):
    """As Detection; the labels' boxes and the answer's items have keypoints. An answer's are
    [x, y] or [x, y, score], in parts of the image, in the data set's order."""

    KIND = _coco.KEYPOINTS

    def __init__(self, dataset: Dataset, labels: Sequence[str], classes: int | None) -> None:
        super().__init__(dataset, labels, classes)
        self.skeletons = _coco.skeletons(dataset.samples)
        for sample in dataset.samples:
            for box in sample.label:
                count = len(box.keypoints) // 3
                if count not in (0, wanted := self.skeletons.get(box.category, 0)):
                    raise UsageError(
                        tr("{name} has {count} keypoints here and {wanted} elsewhere",
                           name=self.categories[box.category], count=count, wanted=wanted),
                        where=sample.name,
                        fix=tr("give every object of a class the same keypoints"),
                    )  # fmt: skip

    def _counts(self, box: Box) -> bool:
        return super()._counts(box) and any(v > 0 for v in box.keypoints[2::3])

    def options(self) -> Mapping[str, Any]:
        return {"kind": "keypoints", "threshold": LEAST_SCORE}

    def outcome(self, sample: Sample, answer: Answer, picture: tuple[int, int] | None) -> Outcome:
        if picture is None or any("keypoints" not in item for item in answer.items):
            raise self.refuse(answer, tr("keypoints in an image"))
        return super().outcome(sample, answer, picture)

    def _found(
        self, category: int, xywh: tuple[float, ...], item: Mapping[str, Any], picture: Any
    ) -> Found:
        made = super()._found(category, xywh, item, picture)
        points = [
            number
            for x, y, *_ in item["keypoints"]
            for number in (float(x) * picture[0], float(y) * picture[1], 1.0)
        ]
        count = len(points) // 3
        if count != (wanted := self.skeletons.get(category, count)):
            raise LiteError(
                tr("{count} keypoints of {name} are answered, the labels have {wanted}",
                   count=count, name=self.categories[category], wanted=wanted),
                where=self.name,
                fix=tr("choose a data set of the model's skeleton, or pass --adapter"),
            )  # fmt: skip
        return made._replace(keypoints=tuple(points))


TASK = Keypoints
