"""Boxes of samples and of answers, and which go together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from ...answers import Answer
    from ..dataset import Box

#: Boxes that share as much (intersection over union) are the same object.
SAME = 0.5


class Found(NamedTuple):
    """A predicted box: class number of the data set, x, y, width, height in pixels, score; and
    x, y, 1 of each keypoint in pixels, if there are any."""

    category: int
    xywh: tuple[float, float, float, float]
    score: float
    keypoints: tuple[float, ...] = ()


def pixels(box: Sequence[float], picture: tuple[int, int]) -> tuple[float, float, float, float]:
    """x0, y0, x1, y1 in parts of the picture → x, y, width, height in its pixels."""
    width, height = picture
    x0, y0, x1, y1 = (v * n for v, n in zip(box, (width, height) * 2, strict=True))
    return x0, y0, x1 - x0, y1 - y0


class Matched(NamedTuple):
    """How many objects were found, how many there are, and how many boxes say they found one;
    without what is to be ignored."""

    found: int
    objects: int
    boxes: int

    @property
    def f1(self) -> float:
        whole = self.objects + self.boxes
        return 2 * self.found / whole if whole else 1.0


def matched(wanted: Sequence[Box], boxes: Sequence[Found]) -> Matched:
    """Each box, best first, takes the free object of its class that it overlaps most, if by SAME.
    A box that finds an ignored object does not count."""
    from pycocotools.mask import iou

    counted = [i for i, w in enumerate(wanted) if not w.ignored]
    ordered = sorted(boxes, key=lambda b: -b.score)
    free, found, wrong = set(range(len(wanted))), 0, 0
    overlaps = (
        iou([list(b.xywh) for b in ordered], [list(w.xywh) for w in wanted],
            [int(w.ignored) for w in wanted])
        if ordered and wanted else np.zeros((len(ordered), 0))
    )  # fmt: skip
    for row, box in zip(np.reshape(overlaps, (len(ordered), len(wanted))), ordered, strict=True):
        fits = [i for i in free if wanted[i].category == box.category and row[i] >= SAME]
        best = max(fits, key=lambda i: (not wanted[i].ignored, row[i]), default=None)
        if best is None:
            wrong += 1
        elif not wanted[best].ignored:
            found += 1
            free.remove(best)
    return Matched(found, len(counted), found + wrong)


def answered(answer: Answer) -> list[tuple[str, int | None, list[float], float]]:
    """(label, class number of the model, box in parts of the picture, score) of each box."""
    return [(i["label"], i.get("index"), i["box"], float(i["score"])) for i in answer.items]
