"""Which of many arrays share memory, without comparing each with every other."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np


class Occupied:
    """The bytes of the arrays that were added, as intervals that do not touch each other."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    def add(self, array: np.ndarray) -> bool:
        """Whether the array's bounds overlapped those of an array added before (as
        `numpy.may_share_memory` tells it)."""
        start, end = _bounds(array)
        if start == end:
            return False
        first = bisect_right(self._ends, start)  # the first interval that ends behind the start
        last = first
        while last < len(self._starts) and self._starts[last] < end:
            last += 1
        overlaps = last > first
        if overlaps:
            start, end = min(start, self._starts[first]), max(end, self._ends[last - 1])
        self._starts[first:last] = [start]
        self._ends[first:last] = [end]
        return overlaps


def _bounds(array: np.ndarray) -> tuple[int, int]:
    """Addresses of its first byte and of the one after its last."""
    if not array.size:
        return 0, 0
    address = array.__array_interface__["data"][0]
    spans = [(size - 1) * stride for size, stride in zip(array.shape, array.strides, strict=True)]
    start = address + sum(span for span in spans if span < 0)
    end = address + sum(span for span in spans if span > 0)
    return start, end + array.itemsize
