"""COCO's JSON of boxes: `images`, `annotations` (bbox [x, y, width, height]) and `categories`; for
instances, `annotations` also have `segmentation`, polygons or run lengths.

Images lie in --images DIR, or beside the file, or in `images` or a folder of the file's name
(without `instances_`) beside it or beside its folder.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lite_engine.documents import Part, parse
from lite_engine.errors import ModelFormatError, UsageError
from lite_engine.files import is_file
from lite_messages import tr

from ..dataset import Box, Dataset, Sample
from ..reading import inside, read_text

TASKS = ("detection", "keypoints", "instances")
MOST_PIXELS = 1 << 26


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
    listed = document["images"].items()
    sizes = {part["id"].integer(): _size(part) for part in listed} if task == "instances" else {}
    boxes: dict[int, list[Box]] = defaultdict(list)
    for part in document["annotations"].items():
        category = part["category_id"].integer()
        if category not in numbers:
            raise ModelFormatError(
                tr("there is no category {category}", category=category), where=part.where
            )
        box, image = _box(part, numbers[category]), part["image_id"].integer()
        if image in sizes:
            box = box._replace(mask=_mask(part["segmentation"], sizes[image]))
        boxes[image].append(box)
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
    return next((p for p in places if is_file(p / name)), path.parent)


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


def _size(image: Part) -> tuple[int, int]:
    """Height and width. Raises ModelFormatError."""
    height, width = image["height"].integer(), image["width"].integer()
    if height < 1 or width < 1 or height * width > MOST_PIXELS:
        raise ModelFormatError(tr("expected the height and width of an image"), where=image.where)
    return height, width


def _mask(given: Part, size: tuple[int, int]) -> Mapping[str, Any]:
    """Polygons, or {"counts": [outside, inside, …]}, as compressed run lengths. Raises
    ModelFormatError: pycocotools trusts what it is given."""
    from pycocotools import mask

    height, width = size
    if isinstance(given.value, list):
        polygons = [[v.number() for v in polygon.items()] for polygon in given.items()]
        for numbers in polygons:
            if len(numbers) % 2 or len(numbers) < 6 or not all(
                -width <= x <= 2 * width and -height <= y <= 2 * height
                for x, y in zip(numbers[::2], numbers[1::2], strict=True)
            ):  # fmt: skip
                raise ModelFormatError(
                    tr("expected polygons [x, y, …] of at least 3 points in the image"),
                    where=given.where,
                )
        runs = mask.merge(mask.frPyObjects(polygons, height, width)) if polygons else None
    else:
        counts = [c.integer() for c in given["counts"].items()]
        if min(counts, default=0) < 0 or sum(counts) != height * width:
            raise ModelFormatError(
                tr("expected `counts` of {pixels} pixels", pixels=height * width), where=given.where
            )
        runs = mask.frPyObjects({"size": [height, width], "counts": counts}, height, width)
    if runs is None:
        runs = mask.frPyObjects(
            {"size": [height, width], "counts": [height * width]}, height, width
        )
    return {"size": [height, width], "counts": runs["counts"].decode("ascii")}
