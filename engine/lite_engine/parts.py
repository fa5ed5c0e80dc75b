"""Files and folders that are not complete yet: names that nobody else uses, each locked by the
process that writes it, so that the next one can tell what a killed process has left."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_NAME = re.compile(r"\.lite-[0-9a-f]{16}\.part")


def new_part(folder: Path) -> tuple[Path, int]:
    """A new file and its descriptor, open for writing. Raises OSError."""
    # Exclusive: two processes that share a folder never write one part, nor follow a link.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    return _locked_part(folder, lambda part: os.open(part, flags, 0o666))


@contextmanager
def part_folder(folder: Path) -> Iterator[Path]:
    """A new folder, removed when the block ends unless it was renamed. Raises OSError."""
    part, number = _locked_part(folder, _make_folder)
    try:
        yield part
    finally:
        shutil.rmtree(part, ignore_errors=True)
        os.close(number)


def remove_stale_parts(folder: Path) -> None:
    """Removes the parts in a folder that no process holds a lock of."""
    with contextlib.suppress(OSError):
        for entry in [e for e in os.scandir(folder) if _NAME.fullmatch(e.name)]:
            with contextlib.suppress(OSError):
                _remove_stale(entry)


def _remove_stale(entry: os.DirEntry[str]) -> None:
    number = os.open(entry.path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    try:
        if not _lock(number):
            return
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            os.unlink(entry.path)  # noqa: PTH108
    finally:
        os.close(number)


def _locked_part(folder: Path, make: Callable[[Path], int]) -> tuple[Path, int]:
    while True:
        part = folder / f".lite-{secrets.token_hex(8)}.part"
        number = make(part)
        _lock(number)
        if os.fstat(number).st_nlink:
            return part, number
        os.close(number)  # taken for stale before it was locked


def _make_folder(part: Path) -> int:
    part.mkdir()
    try:
        return os.open(part, os.O_RDONLY)
    except OSError:
        with contextlib.suppress(OSError):
            part.rmdir()
        raise


def _lock(number: int) -> bool:
    """Locks an open file or folder; False when somebody else has, and where locks do not exist."""
    try:
        import fcntl

        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except (ImportError, OSError):
        return False
