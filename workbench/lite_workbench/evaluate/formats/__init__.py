"""The layouts of data sets, a module each: `TASKS`, `match(path)`, `open(path, task, images)`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import Any

from lite_engine.errors import UsageError
from lite_engine.whole_numbers import checked_whole
from lite_messages import tr

from ..dataset import TASKS, Dataset
from ..remote import is_url, read_remote

#: Modules, asked in this order whether a path is theirs.
FORMATS = (
    "arrays", "coco", "text_lines", "list_file", "pascal_voc", "masks", "pairs", "class_folders",
)  # fmt: skip


def read_dataset(
    source: Any, *, task: str | None = None, images: str | Path | None = None
) -> Dataset:
    """A Dataset, a path or an fsspec URL in one of FORMATS, or (images, labels). `images` is the
    folder of the images that a list or annotation file names (default: where the file lies).
    Raises UsageError.
    """
    if isinstance(source, Dataset):
        return source
    if isinstance(source, tuple) and len(source) == 2:
        from .arrays import of_arrays

        return of_arrays("arrays", *source)
    if not isinstance(source, (str, Path)):
        raise UsageError(
            tr("a {kind} is not a data set", kind=type(source).__name__),
            fix=tr("give a path, a Dataset or a pair (images, labels)"),
        )
    if is_url(source):
        url, beside = str(source), str(images) if images else None
        made = read_remote(url, lambda path, folder: _opened(path, task, folder), beside)
        return replace(made, name=PurePosixPath(url.rstrip("/")).stem)
    path = Path(source)
    if not path.exists():
        raise UsageError(tr("no such file or folder"), where=path)
    return _opened(path, task, Path(images) if images is not None else None)


def sample_of(source: Any, number: int) -> Any:
    """The input of sample `number` of what `read_dataset` reads. Raises UsageError."""
    number = checked_whole(number, 0)
    made = read_dataset(source)
    if number >= len(made):
        raise UsageError(
            tr("there is no sample {number}: the data set has {count}", number=number,
               count=len(made)),
            where=source,
        )  # fmt: skip
    return made.samples[number].source


def _opened(path: Path, task: str | None, images: Path | None) -> Dataset:
    if task is not None and task not in TASKS:
        raise UsageError(
            tr("{task!r} is not a task", task=task),
            fix=tr("choose from {tasks}", tasks=", ".join(TASKS)),
        )
    options: Mapping[str, Any] = {"images": images}
    for name in FORMATS:
        module = import_module(f".{name}", __package__)
        if task in (None, *module.TASKS) and module.match(path):
            made: Dataset = module.open(path, task=task, **options)
            if not made.samples:
                raise UsageError(tr("the data set has no samples"), where=path)
            return made
    raise UsageError(
        tr("not a data set for {task} in a known layout", task=task)
        if task
        else tr("not a data set in a known layout"),
        where=path,
        fix=tr("docs/evaluate.md shows the layouts of folders and files"),
    )  # fmt: skip
