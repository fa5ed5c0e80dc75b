"""Keys of partitioned variables in a bundle.

TensorFlow 1 splits a large variable into parts that are variables of their own. The bundle has the
whole under its name, without data, and each part under a key that encodes the name and the part's
place: counts with their length before them, places in bytes whose order is that of the numbers.
Source: saved_tensor_slice_util.h, ordered_code.h, tensor_slice.h.
"""

from __future__ import annotations

import numpy as np

#: Start and length along one axis; a length of -1 is all of it.
Extent = tuple[int, int]


def extents(spec: str) -> list[Extent]:
    """Of "7 6 0,3:-": from a whole of 7x6 the first three rows. Raises ValueError."""
    found = []
    for axis in spec.rpartition(" ")[2].split(":"):
        start, length = (0, -1) if axis == "-" else map(int, axis.split(","))
        found.append((start, length))
    return found


def cut(array: np.ndarray, places: list[Extent]) -> np.ndarray | None:
    """That part of an array; None where it has none there."""
    if len(places) != array.ndim:
        return None
    found = []
    for (start, length), size in zip(places, array.shape):
        end = size if length < 0 else start + length
        if not 0 <= start <= end <= size:
            return None
        found.append(slice(start, end))
    return array[tuple(found)]


def slice_key(name: str, places: list[Extent]) -> bytes:
    """The key of one part of the variable `name`."""
    text = name.encode().replace(b"\0", b"\0\xff") + b"\0\1"
    numbers = b"".join(_place(n) for extent in places for n in extent)
    return _count(0) + text + _count(len(places)) + numbers


def _count(n: int) -> bytes:
    size = (n.bit_length() + 7) // 8
    return bytes([size]) + n.to_bytes(size, "big")


def _place(n: int) -> bytes:
    """As many leading bits as there are bytes are turned, and say how many there are."""
    size = (~n if n < 0 else n).bit_length() // 7 + 1
    turned = ((1 << size) - 1) << 7 * size
    return (n % (1 << 8 * size) ^ turned).to_bytes(size, "big")
