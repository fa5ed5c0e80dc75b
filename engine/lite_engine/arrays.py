"""Arrays from `.npy` and `.npz` files: nothing in them is trusted, no objects are unpickled."""

from __future__ import annotations

import math
import tokenize
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO

import numpy as np
from lite_messages import tr

from .errors import UsageError
from .system import LZMAError

#: Arrays larger than this are asked about before they are inflated.
LARGE_BYTES = 1 << 24
#: Compressed arrays that become larger than their file by more than this were made to fill the
#: memory; images of one shade become a thousand times larger.
MOST_INFLATED_BYTES = 1 << 32
Accept = Callable[[str, tuple[int, ...]], None]

#: What NumPy and zipfile raise for a file that is no array, cut off, or damaged.
_DAMAGED = (OSError, ValueError, TypeError, EOFError, MemoryError, RuntimeError, SyntaxError,
            tokenize.TokenError, zipfile.BadZipFile, zlib.error, LZMAError)  # fmt: skip


def read_array(path: str | Path) -> np.ndarray:
    """A `.npy` file. Raises UsageError."""
    try:
        with Path(path).open("rb") as file:
            shape, dtype = _header(file, Path(path).name)
            left = Path(path).stat().st_size - file.tell()
            # Before the memory is asked for that a damaged header may name.
            if math.prod(shape) * dtype.itemsize > left and not dtype.hasobject:
                raise ValueError(tr("it ends before its array does"))
            file.seek(0)
            return np.lib.format.read_array(file, allow_pickle=False)
    except _DAMAGED as error:
        raise UsageError(_why(path, tr("a .npy file"), error), where=path) from None


def read_numbers(path: str | Path) -> np.ndarray:
    """The numbers of a `.csv` file, row by row, between commas, semicolons or tabs; a first line of
    words names the columns and is left out. Raises UsageError."""
    try:
        lines = [line for line in Path(path).read_text("utf-8-sig").splitlines() if line.strip()]
        mark = next((m for m in ";\t," if lines and m in lines[0]), ",")
        rows = [[cell.strip() for cell in line.split(mark)] for line in lines]
        if len(rows) > 1 and any(cell and not _is_number(cell) for cell in rows[0]):
            rows = rows[1:]
        for row in rows:
            if len(row) != len(rows[0]):
                raise ValueError(
                    tr(
                        "expected {wanted} numbers in the row {row}, found {count}",
                        row=repr(mark.join(row)),
                        count=len(row),
                        wanted=len(rows[0]),
                    )
                )
        return np.array([[float(cell) for cell in row] for row in rows])
    except (OSError, ValueError) as error:
        raise UsageError(_why(path, tr("a .csv file of numbers"), error), where=path) from None


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def read_arrays(path: str | Path, accept: Accept | None = None) -> dict[str, np.ndarray]:
    """A `.npz` file: name → array. Raises UsageError.

    `accept(name, shape)` raises for a large array that is not wanted, before its bytes are
    inflated: a few megabytes of file can hold gigabytes of zeros. More than MOST_INFLATED_BYTES of
    them are refused.
    """
    try:
        with np.load(path, allow_pickle=False) as data:
            if not isinstance(data, np.lib.npyio.NpzFile):
                raise ValueError(tr("it has one array without a name; save it with np.savez"))
            assert data.zip is not None, "open until the block ends"
            large = _large_arrays(data.zip)
            if accept is not None:
                for name, shape, _ in large:
                    accept(name, shape)
            if sum(size for *_, size in large) - Path(path).stat().st_size > MOST_INFLATED_BYTES:
                raise ValueError(
                    tr(
                        "its arrays need {size} GiB of memory",
                        size=sum(size for *_, size in large) >> 30,
                    )
                )
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


def _large_arrays(archive: zipfile.ZipFile) -> list[tuple[str, tuple[int, ...], int]]:
    """(name, shape, bytes) of the arrays above LARGE_BYTES."""
    return [array for array in _headers(archive) if array[2] > LARGE_BYTES]


def _headers(archive: zipfile.ZipFile) -> list[tuple[str, tuple[int, ...], int]]:
    """(name, shape, bytes) of the arrays, from their headers."""
    found = []
    for member in archive.namelist():
        with archive.open(member) as file:
            shape, dtype = _header(file, member)
        size = math.prod(shape) * dtype.itemsize
        found.append((member.removesuffix(".npy"), shape, size))
    return found


def _header(file: IO[bytes], name: str) -> tuple[tuple[int, ...], np.dtype]:
    """Shape and type of the array that begins here."""
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    reader = readers.get(np.lib.format.read_magic(file))
    if reader is None:
        raise ValueError(tr("{member} has an unknown version of the .npy format", member=name))
    shape, _, dtype = reader(file)
    return tuple(shape), dtype


def _why(path: str | Path, what: str, error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return tr("no such file")
    if isinstance(error, OSError) and error.strerror:
        return tr("cannot be read ({reason})", reason=error.strerror)
    if isinstance(error, MemoryError):
        return tr("out of memory")
    reason = str(next(iter(error.args), error))  # without the place in a parsed header
    if "Object arrays" in reason:
        reason = tr("it contains Python objects")
    elif "pickle" in reason:  # what NumPy takes every unknown file for
        reason = tr("it is in another format")
    return tr("not {what} that can be read ({reason})", what=what, reason=reason)
