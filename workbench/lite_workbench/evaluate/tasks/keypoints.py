"""Keypoints: COCO's mean average precision by object keypoint similarity, with pycocotools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lite_messages import tr

from . import _coco
from ._base import Outcome
from ._boxes import Found
from .detection import LEAST_SCORE, Detection

if TYPE_CHECKING:
    from ...answers import Answer
    from ..dataset import Sample


class Keypoints(Detection):
    """As Detection; the labels' boxes and the answer's items have keypoints. An answer's are
    [x, y] or [x, y, score], in parts of the image, in the data set's order."""

    KIND = _coco.KEYPOINTS

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
        return made._replace(keypoints=tuple(points))


TASK = Keypoints
