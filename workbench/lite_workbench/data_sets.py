"""Labeled data that lies beside a model or in the working folder, found by looking at names and
headers only."""

from __future__ import annotations

import os
from pathlib import Path

from lite_engine.arrays import array_shapes
from lite_engine.errors import UsageError

from .evaluate.formats import masks, pairs, pascal_voc
from .evaluate.reading import is_input

#: Entries of a folder that are looked at.
MOST = 50


def data_sets(model: Path) -> list[list[str]]:
    """[[path, name]] of what `read_dataset` would take. A list in a `.txt` or `.csv` file may be
    anything, so only its path, given by a person, makes it a data set."""
    found: dict[Path, str] = {}
    for folder in {p.resolve(): p for p in (model.parent, Path())}.values():
        for path in sorted(folder.iterdir()):
            if not path.name.startswith(".") and os.access(path, os.R_OK) and is_labeled(path):
                found[path] = f"{path.name}/" if path.is_dir() else path.name
    return [[str(path), name] for path, name in found.items()]


def is_labeled(path: Path) -> bool:
    """Is it labeled data, by names and headers?"""
    if path.is_dir():
        known = any(module.match(path) for module in (masks, pairs, pascal_voc))
        return known or _class_folders(path)
    if path.suffix == ".npz":
        try:
            names = array_shapes(path)
        except UsageError:
            return False
        return bool({"labels", "texts"} & set(names))
    if path.suffix == ".json":
        with path.open("rb") as file:
            return b'"images"' in (head := file.read(1 << 16)) or b'"annotations"' in head
    return path.suffix == ".tsv"


def _class_folders(path: Path) -> bool:
    """At least two folders, and each of the first ones begins with an input."""
    try:
        inner = sorted(p for p in path.iterdir() if p.is_dir() and not p.name.startswith("."))
        return len(inner) > 1 and all(
            any(is_input(p) for p in list(one.iterdir())[:MOST]) for one in inner[:MOST]
        )
    except OSError:
        return False
