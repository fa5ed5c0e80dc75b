"""A list of files and labels as for ImageNet: `val/ILSVRC2012_val_00000001.JPEG 65` in each line.

The label is the last word of a line, a class number or a name; spaces, tabs or a comma separate.
A first line of a .csv file that names columns is skipped.
"""

from __future__ import annotations

import re
from pathlib import Path

from lite_engine.errors import UsageError
from lite_messages import tr

from ..dataset import Dataset, Sample
from ..reading import inside, is_input, lines

TASKS = ("classification",)
_LINE = re.compile(r"^(.*\S)(?:\s+|\s*,\s*)(\S+)$")


def match(path: Path) -> bool:
    return path.is_file() and path.suffix.lower() in (".txt", ".lst", ".csv", ".tsv")


def open(path: Path, task: str | None, images: Path | None) -> Dataset:
    """Raises UsageError for a line without a label, or a file outside of `images`."""
    folder = images or path.parent
    found: list[tuple[str, Path, str]] = []
    for place, line in lines(path):
        words = _LINE.match(line.strip())
        file = inside(folder, words[1].strip("\"' ,"), place) if words else None
        if words is None or file is None or not is_input(file):
            if not found and path.suffix.lower() == ".csv" and "," in line:
                continue  # names of columns
            raise UsageError(
                tr("expected a file and its label, found {line!r}", line=line.strip()[:80]),
                where=place,
            )
        found.append((words[1], file, words[2].strip("\"'")))
    if all(label.isdecimal() for _, _, label in found):
        return Dataset(
            path.stem, "classification", [Sample(n, f, int(label)) for n, f, label in found]
        )
    classes = sorted({label for _, _, label in found})
    numbers = {name: i for i, name in enumerate(classes)}
    samples = [Sample(n, f, numbers[label]) for n, f, label in found]
    return Dataset(path.stem, "classification", samples, classes)
