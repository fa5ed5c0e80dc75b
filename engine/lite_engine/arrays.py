"""Arrays from `.npy` and `.npz` files: nothing in them is trusted, no objects are unpickled."""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
from lite_messages import tr

from .errors import UsageError

#: Arrays larger than this are asked about before they are inflated.
LARGE_BYTES = 1 << 24
Accept = Callable[[str, tuple[int, ...]], None]

#: What NumPy and zipfile raise for a file that is no array, cut off, or damaged.
_DAMAGED = (OSError, ValueError, EOFError, MemoryError, zipfile.BadZipFile, zlib.error,
            NotImplementedError)  # fmt: skip


def read_array(path: str | Path) -> np.ndarray:
    """A `.npy` file. Raises UsageError."""
    try:
        with Path(path).open("rb") as file:
            return np.lib.format.read_array(file, allow_pickle=False)
    except _DAMAGED as error:
        raise UsageError(_why(path, tr("a .npy file"), error), where=path) from None


def read_arrays(path: str | Path, accept: Accept | None = None) -> dict[str, np.ndarray]:
    """A `.npz` file: name → array. Raises UsageError.

    `accept(name, shape)` raises for a large array that is not wanted, before its bytes are
    inflated: a few megabytes of file can hold gigabytes of zeros.
    """
    try:
        with np.load(path, allow_pickle=False) as data:
            if not isinstance(data, np.lib.npyio.NpzFile):
                raise ValueError(tr("one array without a name; save it with np.savez"))
            if accept is not None:
                assert data.zip is not None, "open until the block ends"
                for name, shape in _large_arrays(data.zip):
                    accept(name, shape)
            return {name: data[name] for name in data.files}
    except _DAMAGED as error:
        raise UsageError(_why(path, tr("a .npz file"), error), where=path) from None


def array_shapes(path: str | Path) -> dict[str, tuple[int, ...]]:
    """Name → shape of the arrays of a `.npz` file, from their headers. Raises UsageError."""
    try:
        with zipfile.ZipFile(path) as archive:
            return {name: shape for name, shape, _ in _headers(archive)}
    except _DAMAGED as error:
        raise UsageError(_why(path, tr("a .npz file"), error), where=path) from None


def _large_arrays(archive: zipfile.ZipFile) -> list[tuple[str, tuple[int, ...]]]:
    """(name, shape) of the arrays above LARGE_BYTES."""
    return [(name, shape) for name, shape, size in _headers(archive) if size > LARGE_BYTES]


def _headers(archive: zipfile.ZipFile) -> list[tuple[str, tuple[int, ...], int]]:
    """(name, shape, bytes) of the arrays, from their headers."""
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    found = []
    for member in archive.namelist():
        with archive.open(member) as file:
            reader = readers.get(np.lib.format.read_magic(file))
            if reader is None:
                raise ValueError(
                    tr("{member} has an unknown version of the .npy format", member=member)
                )
            shape, _, dtype = reader(file)
        size = math.prod(shape) * dtype.itemsize
        found.append((member.removesuffix(".npy"), tuple(shape), size))
    return found


def _why(path: str | Path, what: str, error: Exception) -> str:
    if not Path(path).exists():
        return tr("no such file")
    if isinstance(error, OSError) and error.strerror:
        return tr("cannot be read ({reason})", reason=error.strerror)
    reason = str(error)
    if "Object arrays" in reason:
        reason = tr("it holds Python objects")
    elif "pickle" in reason:  # what NumPy takes every unknown file for
        reason = tr("it is in another format")
    return tr("not {what} that can be read ({reason})", what=what, reason=reason)
