"""Segmentation: `images/NAME.jpg` and `masks/NAME.png`, or Pascal VOC's folders.

A mask is a grayscale or palette image of class numbers; 255 does not count.
"""

from __future__ import annotations

from pathlib import Path

from ..dataset import Dataset
from ._pairs import folders, paired

TASKS = ("segmentation",)
_NAMES = (("images", "masks"), ("images", "labels"), ("JPEGImages", "SegmentationClass"))


def match(path: Path) -> bool:
    return folders(path, _NAMES) is not None


def open(path: Path, task: str | None, images: Path | None) -> Dataset:
    """Raises UsageError for a mask without its image."""
    return Dataset(path.name, "segmentation", paired(path, folders(path, _NAMES), images))
