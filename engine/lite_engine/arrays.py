"""Arrays from `.npy` and `.npz` files: nothing in them is trusted, no objects are unpickled."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

import numpy as np

from .errors import UsageError

#: What NumPy and zipfile raise for a file that is no array, cut off, or damaged.
_DAMAGED = (OSError, ValueError, EOFError, MemoryError, zipfile.BadZipFile, zlib.error,
            NotImplementedError)  # fmt: skip


def read_array(path: str | Path) -> np.ndarray:
    """A `.npy` file. Raises UsageError."""
    try:
        with Path(path).open("rb") as file:
            return np.lib.format.read_array(file, allow_pickle=False)
    except _DAMAGED as error:
        raise UsageError(f"{path}: {_why(path, 'a .npy file', error)}") from None


def read_arrays(path: str | Path) -> dict[str, np.ndarray]:
    """A `.npz` file: name → array. Raises UsageError."""
    try:
        with np.load(path, allow_pickle=False) as data:
            if not isinstance(data, np.lib.npyio.NpzFile):
                raise ValueError("one array without a name; save it with np.savez")
            return {name: data[name] for name in data.files}
    except _DAMAGED as error:
        raise UsageError(f"{path}: {_why(path, 'a .npz file', error)}") from None


def _why(path: str | Path, what: str, error: Exception) -> str:
    if not Path(path).exists():
        return "no such file"
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be read ({error.strerror})"
    reason = str(error)
    if "Object arrays" in reason:
        reason = "it holds Python objects"
    elif "pickle" in reason:  # what NumPy takes every unknown file for
        reason = "it is in another format"
    return f"not {what} that can be read ({reason})"
