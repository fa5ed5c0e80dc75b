"""Text lines as PP-OCR lists them: `rec/0001.jpg<tab>TEXT` in each line of a .tsv or .txt file.

For text detection the second column is JSON: `[{"transcription": "A", "points": [[x, y], …]}, …]`;
regions whose transcription is `###` do not count. A first line that names columns is skipped, and
further columns are. Regions are compared by the rectangles that bound their points; the task
`spotting` compares their text, too.
"""

from __future__ import annotations

import math
from itertools import islice
from pathlib import Path

import numpy as np
from lite_engine.documents import Part, parse
from lite_engine.errors import ModelFormatError, UsageError
from lite_messages import tr

from ..dataset import Box, Dataset, Sample
from ..reading import inside, is_input, lines

TASKS = ("text", "regions", "spotting")
_IGNORED = "###"


def match(path: Path) -> bool:
    if not path.is_file() or path.suffix.lower() not in (".tsv", ".txt"):
        return False
    second = [line.split("\t")[1] for _, line in islice(lines(path), 1, 3) if "\t" in line]
    if path.suffix.lower() == ".txt" and not second:
        second = [line.split("\t")[1] for _, line in islice(lines(path), 1) if "\t" in line]
        return any(not text.strip().isdecimal() for text in second)
    return path.suffix.lower() == ".tsv" or any(not text.strip().isdecimal() for text in second)


def open(path: Path, task: str | None, images: Path | None) -> Dataset:
    """Raises UsageError for a line that cannot be read, or a file outside of `images`."""
    folder = images or path.parent
    samples: list[Sample] = []
    regions = task in ("regions", "spotting")
    for number, (place, line) in enumerate(lines(path)):
        name, tab, rest = line.partition("\t")
        if number == 0 and not is_input(Path(name)):
            continue  # names of columns
        if not tab:
            raise UsageError(
                tr("expected a file, a tab and its text, found {line!r}", line=line[:80]),
                where=place,
            )
        regions = regions or (not samples and task is None and rest.lstrip().startswith("["))
        text = rest.split("\t")[0] if not regions else rest
        label = _regions(text, place) if regions else text
        samples.append(Sample(name, inside(folder, name, place), label))
    classes = ("text",) if regions else ()
    return Dataset(path.stem, task or ("regions" if regions else "text"), samples, classes)


def _regions(text: str, place: str) -> tuple[Box, ...]:
    try:
        return tuple(_region(part) for part in parse(text, place).items())
    except ModelFormatError as error:
        raise UsageError.of(error) from None


def _region(part: Part) -> Box:
    """Raises ModelFormatError."""
    points = [[c.number() for c in p.items()] for p in part["points"].items()][:1000]
    if not points or not all(len(p) == 2 and all(map(math.isfinite, p)) for p in points):
        raise ModelFormatError(tr("expected points [[x, y], …]"), where=part.where)
    low, high = np.min(points, axis=0), np.max(points, axis=0)
    width, height = (float(v) for v in high - low)
    text = part["transcription"].text()
    where = (float(low[0]), float(low[1]), width, height)
    return Box(0, where, width * height, text == _IGNORED, text=text)
