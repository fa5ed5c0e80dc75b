"""Opening model files: memory-mapped, with limits, never outside the model's folder."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

from ..errors import ModelFormatError


def map_file(path: Path) -> memoryview:
    """The file's bytes, read-only and memory-mapped. Raises ModelFormatError naming the path."""
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                raise ModelFormatError(f"{path}: the file is empty")
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ModelFormatError(f"{path}: cannot be read ({reason})") from None


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
