"""Class maps of pictures: sizes, and the part that they cover."""

from __future__ import annotations

import numpy as np


def resized(classes: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """(H,W) in another size, by nearest neighbor."""
    rows, columns = (
        np.minimum((np.arange(n) + 0.5) * m / n, m - 1).astype(int)
        for n, m in zip(shape, classes.shape, strict=True)
    )
    found: np.ndarray = classes[np.ix_(rows, columns)].astype(np.int64)
    return found


def part_of(
    shape: tuple[int, ...], window: tuple[float, float, float, float]
) -> tuple[slice, slice]:
    """The pixels of (H,W) in a window x0, y0, x1, y1 of 0…1; at least one."""
    cuts = []
    for length, low, high in zip(shape, window[1::-1], window[3:1:-1], strict=True):
        start = min(round(low * length), length - 1)
        cuts.append(slice(start, max(round(high * length), start + 1)))
    return cuts[0], cuts[1]
