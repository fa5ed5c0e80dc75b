"""Model files mapped into memory, and what happens when another program overwrites one.

Constants are views of the mapping. A file that is replaced by renaming another one to its name
stays whole for whoever has mapped it; one that is overwritten in place changes under the reader,
and reading a page that is no longer there ends the process (SIGBUS). Whoever begins to use a
mapping asks for its state first (`check`); `mmap=False` or LITE_MMAP=0 reads files into memory,
where nothing can change them.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np
from lite_messages import tr

from . import settings
from .errors import ModelFormatError, reason_of

_mapping: ContextVar[bool | None] = ContextVar("mapping", default=None)


class FileState:
    """Size and time of change of a file that is open or mapped."""

    def __init__(self, path: Path, status: os.stat_result) -> None:
        self.path = path
        self._file = status.st_dev, status.st_ino
        self._mark = status.st_size, status.st_mtime_ns

    def check(self) -> None:
        """Raises ModelFormatError when the file was overwritten; another file of its name, or
        none, leaves the one that was opened as it was."""
        try:
            now = self.path.stat()
        except OSError:
            return
        same = (now.st_dev, now.st_ino) == self._file
        if same and (now.st_size, now.st_mtime_ns) != self._mark:
            raise ModelFormatError(
                tr("overwritten after it was opened"),
                where=self.path,
                fix=tr(
                    "open it again; replace files by renaming, or open them with "
                    "mmap=False (LITE_MMAP=0)"
                ),
            )


def file_state(path: Path) -> FileState:
    """Of a file before it is mapped elsewhere. Raises ModelFormatError."""
    try:
        return FileState(path, path.stat())
    except OSError as error:
        raise ModelFormatError(
            tr("cannot be read ({reason})", reason=reason_of(error)), where=path
        ) from None


class MappedFile(mmap.mmap):
    """A read-only mapping with the state of its file."""

    state: FileState


@contextmanager
def mapping(wanted: bool | None) -> Iterator[None]:
    """Whether files that are opened in this block are mapped; None leaves it as it is."""
    if wanted is None:
        yield
        return
    token = _mapping.set(wanted)
    try:
        yield
    finally:
        _mapping.reset(token)


def maps() -> bool:
    """Whether files that are opened here are mapped, or read into memory."""
    wanted = _mapping.get()
    return bool(settings.get("LITE_MMAP")) if wanted is None else wanted


def map_file(path: Path) -> memoryview:
    """The file's bytes, read-only and memory-mapped. Raises ModelFormatError naming the path,
    UsageError for nonsense in LITE_MMAP."""
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            if status.st_size == 0:
                raise ModelFormatError(tr("the file is empty"), where=path)
            if not maps():
                return memoryview(file.read())
            mapped = MappedFile(file.fileno(), 0, access=mmap.ACCESS_READ)
            mapped.state = FileState(path, status)
            return memoryview(mapped)
    except (OSError, ValueError) as error:
        raise ModelFormatError(
            tr("cannot be read ({reason})", reason=reason_of(error)), where=path
        ) from None


def aligned(array: np.ndarray) -> np.ndarray:
    """The array itself, or a copy where its elements lie at odd addresses, as in a protobuf: the
    native runtime takes no unaligned weights. What the file's mapping held of a copy is released.
    """
    if array.flags.aligned:
        return array
    copy = array.copy()
    _release_pages(array)
    return copy


def _release_pages(view: np.ndarray) -> None:
    """Takes the whole pages under a view of a mapped file out of this process's memory; who reads
    them again gets them from the file. Nothing where it is a view of no mapping, or the platform
    cannot.
    """
    if view.nbytes < mmap.PAGESIZE:
        return  # a model has thousands of such constants
    owner: Any = view
    while isinstance(owner, np.ndarray):
        owner = owner.base
    owner = owner.obj if isinstance(owner, memoryview) else owner
    advice = getattr(mmap, "MADV_DONTNEED", None)
    if not isinstance(owner, MappedFile) or advice is None:
        return
    first = np.frombuffer(owner, np.uint8, 1).__array_interface__["data"][0]
    start = view.__array_interface__["data"][0] - first
    end = (start + view.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
    start = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
    if end > start:
        owner.madvise(advice, start, end - start)


def states(views: Iterable[Any]) -> list[FileState]:
    """The states of the mapped files that memory views and arrays are views of, each once."""
    found = {}
    for view in views:
        while not isinstance(view, memoryview) and getattr(view, "base", None) is not None:
            view = view.base
        owner = view.obj if isinstance(view, memoryview) else None
        if isinstance(owner, MappedFile):
            found[id(owner)] = owner.state
    return list(found.values())
