"""Writing a file so that it is there whole or not at all."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from .errors import LiteError

_numbers = itertools.count()


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
        raise LiteError(f"{path}: cannot be written ({error.strerror or error})") from None


def write_file(path: str | Path, content: str | bytes) -> Path:
    """Writes a whole file (text as UTF-8) and returns its path. Raises LiteError."""
    with writing(path) as file:
        file.write(content.encode("utf-8") if isinstance(content, str) else content)
    return Path(path)
