"""Model files memory-mapped, with limits, never outside the model's folder; files written so that
they are there whole or not at all."""

from __future__ import annotations

import itertools
import mmap
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from .errors import LiteError, ModelFormatError, reason_of

_numbers = itertools.count()


def map_file(path: Path) -> memoryview:
    """The file's bytes, read-only and memory-mapped. Raises ModelFormatError naming the path."""
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                raise ModelFormatError("the file is empty", where=path)
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as error:
        raise ModelFormatError(f"cannot be read ({reason_of(error)})", where=path) from None


def head(path: Path, count: int = 64) -> bytes:
    """The first bytes of a file, empty when it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(count)
    except OSError:
        return b""


def inside(folder: Path, name: str) -> Path:
    """A path named by a model file. Raises ModelFormatError when it leaves the model's folder."""
    root = folder.resolve()
    path = (root / name).resolve()
    if "\0" in name or not path.is_relative_to(root):
        raise ModelFormatError(f"{name!r} lies outside the model's folder {folder}")
    return path


@contextmanager
def about(path: str | Path | None) -> Iterator[None]:
    """A LiteError that leaves the block names this file (if there is one) before what it says."""
    try:
        yield
    except LiteError as error:
        if path is not None:
            error.within(path)
        raise


@contextmanager
def writing(path: str | Path) -> Iterator[IO[bytes]]:
    """A binary file that becomes `path` when the block ends: it is written under another name in
    the same folder, then renamed, so that no reader ever sees half of it.

    Links are followed; what is no regular file (a pipe, /dev/stdout) is written in place. Raises
    LiteError when it cannot be written. Whatever ends the block early, nothing is left behind and
    a file that was there stays as it was.
    """
    target = Path(os.path.realpath(path))
    renamed = target.is_file() or not target.exists()
    part = target.with_name(f".lite-{os.getpid()}-{next(_numbers)}.part") if renamed else target
    try:
        try:
            with part.open("wb") as file:
                yield file
            if renamed:
                part.replace(target)
        except BaseException:
            if renamed and part.exists():
                part.unlink()
            raise
    except OSError as error:
        raise LiteError(f"cannot be written ({reason_of(error)})", where=path) from None


def write_file(path: str | Path, content: str | bytes) -> Path:
    """Writes a whole file (text as UTF-8) and returns its path. Raises LiteError."""
    with writing(path) as file:
        file.write(content.encode("utf-8") if isinstance(content, str) else content)
    return Path(path)


@contextmanager
def filling(folder: str | Path) -> Iterator[Path]:
    """A folder whose files become those of `folder` when the block ends; what else is there stays.

    Raises LiteError when they cannot be written. Whatever ends the block early, nothing of it is
    left behind and a folder that was there stays as it was.
    """
    target = Path(os.path.realpath(folder))
    was_there = target.is_dir()
    part = (target if was_there else target.parent) / f".lite-{os.getpid()}-{next(_numbers)}.part"
    try:
        try:
            part.mkdir(parents=True)
            yield part
            if was_there:
                for path in [p for p in part.rglob("*") if p.is_file()]:
                    place = target / path.relative_to(part)
                    place.parent.mkdir(parents=True, exist_ok=True)
                    path.replace(place)
            else:
                part.rename(target)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    except OSError as error:
        raise LiteError(f"cannot be written ({reason_of(error)})", where=folder) from None


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """One process at a time in such a block of the same path; the lock file stays.

    Raises LiteError when the lock file cannot be made.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.with_name(f"{path.name}.lock").open("ab")
    except OSError as error:
        raise LiteError(f"cannot be written ({reason_of(error)})", where=path.parent) from None
    with file:
        _lock(file)  # closing the file gives the lock back
        yield


def _lock(file: IO[bytes]) -> None:
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)  # type: ignore[attr-defined]
        return
    fcntl.flock(file, fcntl.LOCK_EX)
