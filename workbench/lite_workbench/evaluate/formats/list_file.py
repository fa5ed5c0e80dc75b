"""A list of files and labels: `val/ILSVRC2012_val_00000001.JPEG 65` in each line, as for ImageNet,
or a `.csv` file of two or more columns.

In a list the label is the last word of a line, or what follows a tab or comma. In a `.csv` file the
columns are found by their names, else the first one with file names and the last other one count;
commas, semicolons or tabs separate, and a first line of names is skipped. Labels are class numbers
or names.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path

from lite_engine.errors import UsageError
from lite_messages import tr

from ..dataset import Dataset, Sample, check_class_number
from ..reading import inside, is_input, lines, read_text

TASKS = ("classification",)
#: A label behind a tab or comma may be several words, one behind a space is the last word.
_LINES = (re.compile(r"^(.*\S)\s*[\t,]\s*(\S.*)$"), re.compile(r"^(.*\S)\s+(\S+)$"))
#: What the columns of .csv files are called.
_FILES = ("file", "filename", "file_name", "path", "filepath", "image", "img", "image_path")
_LABELS = ("label", "class", "category", "target", "y", "class_name", "label_name", "class_id")


def match(path: Path) -> bool:
    return path.is_file() and path.suffix.lower() in (".txt", ".lst", ".csv", ".tsv")


def open(path: Path, task: str | None, images: Path | None) -> Dataset:
    """Raises UsageError for a line without a label, or a file outside of `images`."""
    folder = images or path.parent
    rows = _columns(path) if path.suffix.lower() == ".csv" else _listed(path)
    found = [(name, inside(folder, name, place), label) for place, name, label in rows]
    if all(label.removeprefix("-").isdecimal() for _, _, label in found):
        for name, _, label in found:
            check_class_number(int(label), f"{path}: {name}")
        return Dataset(
            path.stem, "classification", [Sample(n, f, int(label)) for n, f, label in found]
        )
    classes = sorted({label for _, _, label in found})
    numbers = {name: i for i, name in enumerate(classes)}
    samples = [Sample(n, f, numbers[label]) for n, f, label in found]
    return Dataset(path.stem, "classification", samples, classes)


def _listed(path: Path) -> Iterator[tuple[str, str, str]]:
    """(place, file, label) of each line of a list. Raises UsageError."""
    for place, line in lines(path):
        found = [m for m in (form.match(line.strip()) for form in _LINES) if m]
        pairs = [(m[1].strip("\"' ,"), m[2].strip("\"'")) for m in found]
        pair = next(((name, label) for name, label in pairs if _suits(name)), None)
        if pair is None:
            raise _unlike(line.strip(), place)
        yield place, *pair


def _columns(path: Path) -> Iterator[tuple[str, str, str]]:
    """(place, file, label) of each row of a .csv file. Raises UsageError."""
    text = read_text(path)
    first = text.lstrip().partition("\n")[0]
    between = max(",;\t", key=first.count)
    reader = csv.reader(io.StringIO(text), delimiter=between, skipinitialspace=True,
                        strict=True)  # fmt: skip
    chosen: tuple[int, int] | None = None
    try:
        for row in reader:
            place = f"{path}:{reader.line_num}"
            cells = [cell.strip() for cell in row]
            if not any(cells) or cells[0].startswith("#"):
                continue
            if chosen is None:
                chosen, heads = _chosen(cells, place)
                if heads:
                    continue
            if len(cells) <= max(chosen) or not cells[chosen[1]]:
                raise _unlike(between.join(row), place)
            if not _suits(cells[chosen[0]]):
                raise _unlike(between.join(row), place)
            yield place, cells[chosen[0]], cells[chosen[1]]
    except csv.Error as error:
        raise UsageError(tr("not a CSV file ({reason})", reason=error), where=path) from None


def _chosen(cells: list[str], place: str) -> tuple[tuple[int, int], bool]:
    """The columns of files and labels by the first row, and whether it names them. Raises
    UsageError."""
    files = [i for i, cell in enumerate(cells) if _suits(cell)]
    if len(cells) > 1 and files:
        return (files[0], [i for i in range(len(cells)) if i != files[0]][-1]), False
    heads = [re.sub(r"[\s-]+", "_", cell).casefold() for cell in cells]
    file = next((i for i, head in enumerate(heads) if head in _FILES), 0)
    others = [i for i in range(len(heads)) if i != file]
    if not others:
        raise _unlike(", ".join(cells), place)
    return (file, next((i for i in others if heads[i] in _LABELS), others[-1])), True


def _suits(name: str) -> bool:
    """Can it be the name of an input? Where it lies is looked at afterwards."""
    return is_input(Path("a" + Path(name).suffix))


def _unlike(line: str, place: str) -> UsageError:
    return UsageError(
        tr("expected a file and its label, found {line!r}", line=line[:80]), where=place
    )
