"""Boxes of samples and of answers, and which go together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from ...answers import Answer
    from ..dataset import Box

#: Boxes that share as much (intersection over union) are the same object.
SAME = 0.5


class Found(NamedTuple):
    """A predicted box: class number of the data set, x, y, width, height in pixels, score; x, y, 1
    of each keypoint in pixels and the mask's compressed run lengths, if there are any."""

    category: int
    xywh: tuple[float, float, float, float]
    score: float
    keypoints: tuple[float, ...] = ()
    mask: Mapping[str, Any] | None = None


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


def pairs(wanted: Sequence[Box], boxes: Sequence[Found]) -> list[tuple[int, int | None]]:
    """(box, its object or None): each box, best first, takes the free object of its class that it
    overlaps most, if by SAME. Ignored objects stay free."""
    from pycocotools.mask import iou

    order = sorted(range(len(boxes)), key=lambda i: -boxes[i].score)
    ordered = [boxes[i] for i in order]
    free: set[int] = set(range(len(wanted)))
    found: list[tuple[int, int | None]] = []
    overlaps = (
        iou([list(b.xywh) for b in ordered], [list(w.xywh) for w in wanted],
            [int(w.ignored) for w in wanted])
        if ordered and wanted else np.zeros((len(ordered), 0))
    )  # fmt: skip
    rows = np.reshape(overlaps, (len(ordered), len(wanted)))
    for number, row in zip(order, rows, strict=True):
        category = boxes[number].category
        fits = [i for i in free if wanted[i].category == category and row[i] >= SAME]
        best = max(fits, key=lambda i: (not wanted[i].ignored, row[i]), default=None)
        found.append((number, best))
        if best is not None and not wanted[best].ignored:
            free.remove(best)
    return found


def matched(wanted: Sequence[Box], boxes: Sequence[Found]) -> Matched:
    """What `pairs` finds. A box that finds an ignored object does not count."""
    taken = [best for _, best in pairs(wanted, boxes)]
    found = sum(best is not None and not wanted[best].ignored for best in taken)
    objects = sum(not w.ignored for w in wanted)
    return Matched(found, objects, found + sum(best is None for best in taken))


def answered(answer: Answer) -> list[tuple[str, int | None, list[float], float]]:
    """(label, class number of the model, box in parts of the picture, score) of each box."""
    return [(i["label"], i.get("index"), i["box"], float(i["score"])) for i in answer.items]
