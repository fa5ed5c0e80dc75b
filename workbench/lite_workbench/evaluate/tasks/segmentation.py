"""Segmentation: mean IoU over classes, and pixel accuracy.

IoU of a class is |prediction ∩ label| / |prediction ∪ label| over the pixels of all samples, pixels
of value 255 aside; the mean is over the classes that occur. The predicted classes are brought to
the mask's size by nearest neighbor. Where preprocessing cuts the center out of an image, only the
center counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from lite_engine.errors import UsageError
from lite_engine.images import open_image
from lite_messages import tr

from ...masks import part_of, resized
from ..statistics import Measure, ratio
from ._base import ClassResult, Outcome, Task, UnreadableLabel

if TYPE_CHECKING:
    from ...answers import Answer
    from ..dataset import Sample

IGNORED = 255


class Segmentation(Task):
    """A sample's label is the file of its mask; `data` of an outcome is (3, 256) pixels of each
    class: in both, in the label, in the prediction."""

    #: A mask has a number for each pixel of the file; it carries no orientation of its own.
    AS_STORED = True

    def options(self) -> Mapping[str, Any]:
        return {"kind": "mask"}

    def _name(self, number: int) -> str:
        return (
            self.labels[number]
            if number < len(self.labels)
            else tr("class {number}", number=number)
        )

    def truth(self, sample: Sample) -> str:
        return str(getattr(sample.label, "name", "mask"))

    def outcome(self, sample: Sample, answer: Answer, picture: tuple[int, int] | None) -> Outcome:
        if answer.mask is None:
            raise self.refuse(answer, tr("an image of classes"))
        whole = read_mask(sample.label)
        self._check(whole, picture, self.truth(sample))
        wanted = whole[part_of(whole.shape, answer.window)]
        got = resized(answer.mask, wanted.shape)
        counted = wanted != IGNORED
        wanted, got = wanted[counted], np.clip(got[counted], 0, IGNORED)
        pixels = np.stack(
            [np.bincount(v, minlength=IGNORED + 1) for v in (wanted[wanted == got], wanted, got)]
        )
        there = pixels[1] > 0
        mean_iou = float(np.mean(_iou(pixels)[there])) if there.any() else 1.0
        largest = np.argsort(-pixels[2], kind="stable")[:3]
        said = ", ".join(
            f"{self._name(int(n))} {100 * pixels[2][n] / max(pixels[2].sum(), 1):.0f} %"
            for n in largest
            if pixels[2][n]
        )
        return Outcome(said, None, mean_iou, None, pixels)

    def _check(self, mask: np.ndarray, picture: tuple[int, int] | None, where: str) -> None:
        """Raises UnreadableLabel for a mask of another shape than the picture (width, height), and
        for classes that no label names."""
        height, width = mask.shape
        if picture is not None and abs(width * picture[1] - height * picture[0]) > max(picture):
            raise UnreadableLabel(
                tr("the mask has {size} pixels, the image {picture}", size=f"{width}×{height}",
                   picture="×".join(map(str, picture))),
                where=where,
            )  # fmt: skip
        largest = int(mask[mask != IGNORED].max(initial=0))
        if self.labels and largest >= len(self.labels):
            raise UnreadableLabel(
                tr("class {largest}, but there are {labels} labels", largest=largest,
                   labels=len(self.labels)),
                where=where,
                fix=tr("number the classes like the labels, from 0; pixels of 255 are not counted"),
            )  # fmt: skip

    def measures(self, samples: Sequence[Sample], outcomes: Sequence[Outcome]) -> list[Measure]:
        pixels = np.array([o.data for o in outcomes])
        parts = pixels.reshape(len(pixels), -1).astype(np.float64)

        def mean_iou(sums: np.ndarray) -> np.ndarray:
            iou = _iou(sums.reshape(*sums.shape[:-1], 3, -1))
            return np.asarray(np.nanmean(iou, axis=-1))

        def accuracy(sums: np.ndarray) -> np.ndarray:
            whole = sums.reshape(*sums.shape[:-1], 3, -1).sum(axis=-1)
            return np.asarray(whole[..., 0] / np.maximum(whole[..., 1], 1))

        total = parts.sum(axis=0)
        return [
            Measure("mIoU", float(mean_iou(total)), ratio(parts, mean_iou)),
            Measure("pixel accuracy", float(accuracy(total)), ratio(parts, accuracy)),
        ]

    def classes(self, samples: Sequence[Sample], outcomes: Sequence[Outcome]) -> list[ClassResult]:
        total = np.sum([o.data for o in outcomes], axis=0)
        iou = _iou(total)
        return [
            ClassResult(self._name(int(n)), int(total[1][n]), {"IoU": float(iou[n])})
            for n in np.flatnonzero(np.isfinite(iou))
        ]


def _iou(pixels: np.ndarray) -> np.ndarray:
    """(…, 3, classes) → (…, classes), NaN for a class that does not occur."""
    both, label, made = pixels[..., 0, :], pixels[..., 1, :], pixels[..., 2, :]
    union = np.asarray(label + made - both, np.float64)
    found: np.ndarray = np.full(union.shape, np.nan)
    np.divide(both, union, out=found, where=union > 0)
    return found


def read_mask(path: Any) -> np.ndarray:
    """(H,W) class numbers of a file, or of an array. Raises UnreadableLabel."""
    if isinstance(path, np.ndarray):
        return path
    try:
        picture = open_image(path, as_stored=True)
    except UsageError as error:
        raise UnreadableLabel.of(error) from None
    if picture.mode not in ("L", "P", "1"):
        raise UnreadableLabel(
            tr(
                "expected a grayscale or palette image of class numbers, found {mode}",
                mode=picture.mode,
            ),
            where=path,
        )
    array = np.asarray(picture)
    return array.astype(np.uint8)


TASK = Segmentation
