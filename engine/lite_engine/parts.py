"""Files and folders that are not complete yet: names that nobody else uses, each locked by the
process that writes it, so that the next one can tell what a killed process has left."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from . import system

#: Links are not followed, and Windows' C library changes no line feed.
_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
#: Where locks do not tell who is at work: nothing takes that long to write.
_STALE_S = 24 * 3600
_NAME = re.compile(r"\.lite-[0-9a-f]{16}\.part")


def new_part(folder: Path) -> tuple[Path, int]:
    """A new file and its descriptor, open for writing. Raises OSError."""
    # Exclusive: two processes that share a folder never write one part, nor follow a link.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS
    part, number = _locked_part(folder, lambda part: os.open(part, flags, 0o666))
    assert number is not None
    return part, number


@contextmanager
def part_folder(folder: Path) -> Iterator[Path]:
    """A new folder, removed when the block ends unless it was renamed. Raises OSError."""
    part, number = _locked_part(folder, _make_folder)
    try:
        yield part
    finally:
        shutil.rmtree(part, ignore_errors=True)
        if number is not None:
            os.close(number)


def remove_stale_parts(folder: Path) -> None:
    """Removes the parts in a folder that no process holds a lock of."""
    with contextlib.suppress(OSError):
        for entry in [e for e in os.scandir(folder) if _NAME.fullmatch(e.name)]:
            with contextlib.suppress(OSError):
                _remove_stale(entry)


def _remove_stale(entry: os.DirEntry[str]) -> None:
    if system.WINDOWS:  # no lock of a folder, and no file that is open can be removed
        if time.time() - entry.stat(follow_symlinks=False).st_mtime > _STALE_S:
            _remove(entry)
        return
    number = os.open(entry.path, os.O_RDONLY | _FLAGS)
    try:
        if system.try_lock(number):
            _remove(entry)
    finally:
        os.close(number)


def _remove(entry: os.DirEntry[str]) -> None:
    if entry.is_dir(follow_symlinks=False):
        shutil.rmtree(entry.path)
    else:
        os.unlink(entry.path)  # noqa: PTH108


def _locked_part(folder: Path, make: Callable[[Path], int | None]) -> tuple[Path, int | None]:
    while True:
        part = folder / f".lite-{secrets.token_hex(8)}.part"
        number = make(part)
        if number is None:
            return part, number
        held = system.try_lock(number)
        if held is None or (held and os.fstat(number).st_nlink):
            return part, number
        os.close(number)  # another process took it for stale before it was locked


def _make_folder(part: Path) -> int | None:
    part.mkdir()
    try:
        return system.open_folder(part)
    except OSError:
        with contextlib.suppress(OSError):
            part.rmdir()
        raise
