"""COCO's JSON of boxes: `images`, `annotations` (bbox [x, y, width, height]) and `categories`.

Images lie in --images DIR, or beside the file, or in `images` or a folder of the file's name
(without `instances_`) beside it or beside its folder.
"""

from __future__ import annotations

import math
from collections import defaultdict
from pathlib import Path

from lite_engine.documents import Part, parse
from lite_engine.errors import ModelFormatError, UsageError
from lite_messages import tr

from ..dataset import Box, Dataset, Sample
from ..reading import inside, read_text

TASKS = ("detection", "keypoints")


def match(path: Path) -> bool:
    return path.is_file() and path.suffix.lower() == ".json"


def open(path: Path, task: str | None, images: Path | None) -> Dataset:
    """Raises UsageError."""
    try:
        return _opened(path, parse(read_text(path), tr("COCO data set")), images, task)
    except ModelFormatError as error:
        raise UsageError.of(error, where=path) from None


def _opened(path: Path, document: Part, images: Path | None, task: str | None) -> Dataset:
    categories = document["categories"].items()
    numbers = {c["id"].integer(): i for i, c in enumerate(categories)}
    boxes: dict[int, list[Box]] = defaultdict(list)
    for part in document["annotations"].items():
        category = part["category_id"].integer()
        if category not in numbers:
            raise ModelFormatError(
                tr("there is no category {category}", category=category), where=part.where
            )
        boxes[part["image_id"].integer()].append(_box(part, numbers[category]))
    listed = document["images"].items()
    first = listed[0]["file_name"].text() if listed else ""
    folder = images or _folder(path, first)
    samples = [
        Sample(name, inside(folder, name, part.where), tuple(boxes[part["id"].integer()]))
        for part in listed
        for name in [part["file_name"].text()]
    ]
    if task is None:  # categories of a data set of keypoints name them
        named = any(c.get("keypoints") is not None for c in categories)
        task = "keypoints" if named else "detection"
    return Dataset(path.stem, task, samples, [c["name"].text() for c in categories])


def _folder(path: Path, name: str) -> Path:
    """Where the first image lies."""
    inside(path.parent, name or "none", path)  # before anything is looked for
    stem = path.stem.removeprefix("instances_")
    around = [path.parent, path.parent.parent]
    places = [path.parent, *(a / sub for a in around for sub in ("images", stem))]
    return next((p for p in places if (p / name).is_file()), path.parent)


def _box(part: Part, category: int) -> Box:
    """Raises ModelFormatError."""
    numbers = [v.number() for v in part["bbox"].items()]
    if len(numbers) != 4 or not all(map(math.isfinite, numbers)) or min(numbers[2:]) < 0:
        raise ModelFormatError(tr("expected bbox [x, y, width, height]"), where=part.where)
    x, y, width, height = numbers
    area, crowd = part.get("area"), part.get("iscrowd")
    return Box(
        category, (x, y, width, height), area.number() if area else width * height,
        crowd is not None and crowd.truth(), _keypoints(part),
    )  # fmt: skip


def _keypoints(part: Part) -> tuple[float, ...]:
    """x, y, visibility of each. Raises ModelFormatError."""
    given = part.get("keypoints")
    numbers = [v.number() for v in given.items()] if given is not None else []
    if len(numbers) % 3 or not all(map(math.isfinite, numbers)):
        raise ModelFormatError(tr("expected keypoints [x, y, visibility, …]"), where=part.where)
    return tuple(numbers)
