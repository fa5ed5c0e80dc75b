"""Data sets at an fsspec URL (s3://, gs://, https://, …): a skeleton of the folder lies in a
temporary one, with the labels in it; each image is fetched when it is used, by whoever uses it.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from lite_engine.errors import LiteError, UsageError, reason_of
from lite_messages import tr

from .dataset import Dataset, Sample
from .reading import MAX_BYTES, UnreadableSource, inside, is_input

_URL = re.compile(r"[a-z][a-z0-9+.-]+://")
#: Files of one data set.
MOST_FILES = 5_000_000


@dataclass(frozen=True)
class Remote:
    """A file elsewhere; `name` is what it is called in the data set."""

    url: str
    name: str


T = TypeVar("T")


def is_url(source: Any) -> bool:
    return isinstance(source, str) and bool(_URL.match(source))


def read_remote(
    url: str, read: Callable[[Path, Path | None], Dataset], images: str | None
) -> Dataset:
    """`read(path, folder of the images)` of the skeleton; what its samples name are `Remote`
    files. Raises UsageError, LiteError."""
    if images is not None and not is_url(images):
        raise UsageError(tr("the images must lie at a URL, like the data set"), where=images)
    with tempfile.TemporaryDirectory(prefix="lite-data-") as name:
        root = Path(name)
        urls: dict[Path, str] = {}
        path = _skeleton(url, root / "data", urls)
        folder = _skeleton(images, root / "images", urls) if images is not None else None
        made = read(path, folder)
        samples = [
            replace(s, source=_elsewhere(s.source, urls), label=_elsewhere(s.label, urls))
            for s in made.samples
        ]
    return replace(made, samples=samples)


def _skeleton(url: str, root: Path, urls: dict[Path, str]) -> Path:
    """The file or folder of a URL below `root`: samples are empty files, entered in `urls`; other
    files are fetched."""
    if find_spec("fsspec") is None:
        raise LiteError(
            tr("data at a URL needs the package fsspec, which is not installed"),
            command="pip install 'lite-workbench[cluster]'",
        )
    fsspec: Any = import_module("fsspec")
    try:
        fs, base = fsspec.core.url_to_fs(url)
        lone = fs.isfile(base)
        parent = base.rpartition("/")[0] if lone else base.rstrip("/")
        found = fs.find(parent)
    except (OSError, ImportError, ValueError) as error:
        raise UsageError(
            tr("cannot be read: {reason}", reason=reason_of(error)), where=url
        ) from None
    if not found or len(found) > MOST_FILES:
        raise UsageError(
            tr("expected 1 to {most} files, found {n}", most=MOST_FILES, n=len(found)), where=url
        )
    for name in found:
        relative = PurePosixPath(name).relative_to(parent).as_posix()
        here = inside(root, relative, url)
        here.parent.mkdir(parents=True, exist_ok=True)
        urls[here] = fs.unstrip_protocol(name)
        if is_input(here) and here.suffix != ".npz":
            here.touch()
        elif name == base or not lone:
            here.write_bytes(fetched(urls[here]))
    return root / PurePosixPath(base).relative_to(parent) if lone else root


def fetched(url: str) -> bytes:
    """The bytes of a file, at most MAX_BYTES. Raises UsageError."""
    fsspec: Any = import_module("fsspec")
    try:
        with fsspec.open(url, "rb") as file:
            data: bytes = file.read(MAX_BYTES + 1)
    except (OSError, ImportError, ValueError) as error:
        raise UsageError(
            tr("cannot be read: {reason}", reason=reason_of(error)), where=url
        ) from None
    if len(data) > MAX_BYTES:
        raise UsageError(tr("larger than {most} MiB", most=MAX_BYTES >> 20), where=url)
    return data


def _elsewhere(value: T, urls: dict[Path, str]) -> T | Remote:
    return Remote(urls[value], value.name) if isinstance(value, Path) and value in urls else value


@contextmanager
def local(sample: Sample) -> Iterator[Sample]:
    """The sample with its files here, as long as the block lasts. Raises UnreadableSource."""
    if not isinstance(sample.source, Remote) and not isinstance(sample.label, Remote):
        yield sample
        return
    with tempfile.TemporaryDirectory(prefix="lite-sample-") as name:
        try:
            source, label = (
                _here(value, Path(name) / part)
                for part, value in (("source", sample.source), ("label", sample.label))
            )
        except UsageError as error:
            raise UnreadableSource.of(error) from None
        yield replace(sample, source=source, label=label)


def _here(value: T, folder: Path) -> T | Path:
    if not isinstance(value, Remote):
        return value
    folder.mkdir()
    path = folder / value.name
    path.write_bytes(fetched(value.url))
    return path
