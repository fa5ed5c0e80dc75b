"""Dataset: samples with labels. A sample names its image; the image is read when it is used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from lite_engine.errors import UsageError
from lite_engine.whole_numbers import as_whole
from lite_messages import tr

#: What can be evaluated, and what the label of a sample is.
TASKS = {
    "classification": tr(
        "a number of `classes`, or of the model's own classes where there are none"
    ),
    "detection": tr("a tuple of `Box`"),
    "keypoints": tr("a tuple of `Box` with keypoints"),
    "instances": tr("a tuple of `Box` with masks"),
    "segmentation": tr("the file of a mask: class numbers, 255 where it does not count"),
    "text": tr("the text"),
    "regions": tr("a tuple of `Box`: where text is"),
    "spotting": tr("a tuple of `Box` with text: where it is and what it says"),
    "image": tr("the file of the image that should come out"),
}


@dataclass(frozen=True)
class Sample:
    """`source` is a file, an (H,W[,C]) uint8 image, an input or feeds; `label` as in TASKS."""

    name: str
    source: Any
    label: Any


class Box(NamedTuple):
    """An object: its class (a number of `classes`) and x, y, width, height in pixels. `ignored` is
    a crowd, or too difficult to count: finding it is neither right nor wrong. `keypoints` are x, y
    and COCO's visibility (0: not labeled) of each; `text` is what stands there; `mask` are the
    object's pixels as COCO's compressed run lengths, {"size": [height, width], "counts": text}."""

    category: int
    xywh: tuple[float, float, float, float]
    area: float
    ignored: bool = False
    keypoints: tuple[float, ...] = ()
    text: str = ""
    mask: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Dataset:
    """`classes` are the names that labels count in; empty where labels are the model's numbers.
    `metric` names the one that is compared and has a budget; empty for the task's first. `offset`
    is by how much the labels have been `shifted`."""

    name: str
    task: str
    samples: Sequence[Sample]
    classes: Sequence[str] = ()
    metric: str = ""
    offset: int = 0

    def __len__(self) -> int:
        return len(self.samples)

    def first(self, limit: int | None) -> Dataset:
        """At most `limit` samples, spread evenly over the data set: folders come class by class.
        Raises UsageError for a limit that is not a whole number of 1 or more."""
        number = as_whole(limit)
        if limit is not None and (number is None or number < 1):
            raise UsageError(
                tr("limit must be a whole number of 1 or more, got {value!r}", value=limit)
            )
        count = len(self.samples)
        if limit is None or limit >= count:
            return self
        chosen = [self.samples[i * count // limit] for i in range(limit)]
        return replace(self, samples=chosen)

    def shifted(self, offset: int) -> Dataset:
        """The class numbers of labels plus `offset`; names that are numbers count as these. Raises
        UsageError for labels with other names."""
        if self.task != "classification" or not all(name.isdecimal() for name in self.classes):
            raise UsageError(tr("--label-offset needs labels that are class numbers"))
        numbers = [int(name) for name in self.classes]
        moved = [
            replace(s, label=(numbers[s.label] if numbers else s.label) + offset)
            for s in self.samples
        ]
        return replace(self, samples=moved, classes=(), offset=self.offset + offset)


def check_class_number(number: int, where: str = "") -> None:
    """Raises UsageError for a negative one."""
    if number < 0:
        raise UsageError(
            tr("label {least} is negative", least=number),
            where=where,
            fix=tr("number the classes from 0, and leave out samples without one"),
        )
