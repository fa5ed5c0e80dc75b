"""Pairs of images: `input/NAME.png` and, as it should come out, `target/NAME.png`."""

from __future__ import annotations

from pathlib import Path

from ..dataset import Dataset
from ._pairs import folders, paired

TASKS = ("image",)
_NAMES = (("input", "target"), ("lr", "hr"))


def match(path: Path) -> bool:
    return folders(path, _NAMES) is not None


def open(path: Path, task: str | None, images: Path | None) -> Dataset:
    """Raises UsageError for a target without its input."""
    return Dataset(path.name, "image", paired(path, folders(path, _NAMES), images))
