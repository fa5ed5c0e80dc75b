"""Instance segmentation: COCO's mean average precision of masks, with pycocotools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lite_messages import tr

from . import _coco
from ._base import Outcome
from ._boxes import Found
from .detection import Detection

if TYPE_CHECKING:
    from ...answers import Answer
    from ..dataset import Sample


class Instances(Detection):
    """As Detection; the labels' boxes and the answer's items have masks. An answer's are COCO's run
    lengths over the image, {"size": [height, width], "counts": [outside, inside, …]}."""

    KIND = _coco.INSTANCES

    def outcome(self, sample: Sample, answer: Answer, picture: tuple[int, int] | None) -> Outcome:
        if answer.items and not any("mask" in item for item in answer.items):
            raise self.refuse(answer, tr("masks of things in an image"))
        return super().outcome(sample, answer, picture)

    def _found(
        self, category: int, xywh: tuple[float, ...], item: Mapping[str, Any], picture: Any
    ) -> Found:
        from pycocotools import mask

        width, height = picture
        given = item.get("mask") or {"size": [height, width], "counts": [width * height]}
        runs = mask.frPyObjects(dict(given), *given["size"])
        made = {"size": list(given["size"]), "counts": runs["counts"].decode("ascii")}
        return super()._found(category, xywh, item, picture)._replace(mask=made)


TASK = Instances
