"""Pascal VOC's boxes: `Annotations/NAME.xml` and `JPEGImages/NAME.jpg`, or both in one folder.

Objects that are marked `difficult` do not count. Corners are pixels counted from 1, both inside the
box.
"""

from __future__ import annotations

import math
from pathlib import Path
from xml.etree import ElementTree

from lite_engine.errors import UsageError
from lite_engine.files import is_file
from lite_engine.images import IMAGE_SUFFIXES
from lite_messages import tr

from ..dataset import Box, Dataset, Sample
from ..reading import read_text

TASKS = ("detection",)


def match(path: Path) -> bool:
    return path.is_dir() and any(_annotations(path).glob("*.xml"))


def _annotations(path: Path) -> Path:
    return path / "Annotations" if (path / "Annotations").is_dir() else path


def open(path: Path, task: str | None, images: Path | None) -> Dataset:
    """Raises UsageError."""
    files = sorted(_annotations(path).glob("*.xml"))
    beside = path / "JPEGImages" if (path / "JPEGImages").is_dir() else path
    found = [(file, _objects(file)) for file in files]
    classes = sorted({name for _, objects in found for name, *_ in objects})
    numbers = {name: i for i, name in enumerate(classes)}
    samples = [
        Sample(file.stem, _image(images or beside, file.stem),
               tuple(_box(numbers[name], corners, ignored)
                     for name, corners, ignored in objects))
        for file, objects in found
    ]  # fmt: skip
    return Dataset(path.name, "detection", samples, classes)


def _image(folder: Path, stem: str) -> Path:
    """The image of that name; its own name where there is none, which is told when it is read."""
    there = (folder / f"{stem}{suffix}" for suffix in IMAGE_SUFFIXES)
    return next((p for p in there if is_file(p)), folder / f"{stem}.jpg")


def _objects(path: Path) -> list[tuple[str, tuple[float, ...], bool]]:
    """(class, corners, difficult) of each object. Raises UsageError."""
    text = read_text(path)
    if "<!" in text.replace("<!--", ""):
        raise UsageError(
            tr("a document type or an entity is not expected in annotations"), where=path
        )
    try:
        root = ElementTree.fromstring(text)
        return [_object(node) for node in root.iter("object")]
    except (ElementTree.ParseError, ValueError, RecursionError) as error:
        raise UsageError(
            tr("not a Pascal VOC annotation ({error})", error=error), where=path
        ) from None


def _object(node: ElementTree.Element) -> tuple[str, tuple[float, ...], bool]:
    """Raises ValueError."""
    name = (node.findtext("name") or "").strip()
    keys = ("xmin", "ymin", "xmax", "ymax")
    corners = tuple(float(node.findtext(f"bndbox/{k}") or "nan") for k in keys)
    if not name or not all(map(math.isfinite, corners)):
        raise ValueError(tr("an object without a name or without its corners"))
    return name, corners, (node.findtext("difficult") or "0").strip() == "1"


def _box(category: int, corners: tuple[float, ...], ignored: bool) -> Box:
    x0, y0, x1, y1 = corners
    width, height = max(x1 - x0 + 1, 0.0), max(y1 - y0 + 1, 0.0)
    return Box(category, (x0 - 1, y0 - 1, width, height), width * height, ignored)
