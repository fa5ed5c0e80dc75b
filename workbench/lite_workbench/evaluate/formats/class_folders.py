"""A folder per class: FOLDER/CLASS/….png, also .wav, .npy and .npz."""

from __future__ import annotations

from pathlib import Path

from lite_engine.errors import UsageError
from lite_messages import tr

from ..dataset import Dataset, Sample
from ..reading import inputs_in

TASKS = ("classification",)


def match(path: Path) -> bool:
    return path.is_dir() and any(_classes(path))


def _classes(path: Path) -> list[Path]:
    return sorted(p for p in path.iterdir() if p.is_dir() and not p.name.startswith("."))


def open(path: Path, task: str | None, images: Path | None) -> Dataset:
    """Raises UsageError for a class without a file."""
    folders = _classes(path)
    samples = []
    for number, folder in enumerate(folders):
        files = inputs_in(folder)
        if not files:
            raise UsageError(
                tr("the folder of a class holds no image, .wav or .npy file"), where=folder
            )
        samples += [Sample(str(f.relative_to(path)), f, number) for f in files]
    return Dataset(path.name, "classification", samples, [f.name for f in folders])
