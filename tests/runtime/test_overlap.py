"""Arrays that share memory, told as NumPy tells it."""

from __future__ import annotations

import numpy as np
from lite_engine.runtime.overlap import Occupied


def test_as_numpy_tells_it():
    """Slices of a few buffers, forwards, backwards and in steps, in any order."""
    rng = np.random.default_rng(7)
    buffers = [np.zeros(64, np.float32) for _ in range(3)]
    shared = 0
    for _ in range(200):
        occupied, added = Occupied(), []
        for _ in range(12):
            buffer = buffers[rng.integers(3)]
            start, length = int(rng.integers(60)), int(rng.integers(0, 9))
            array = buffer[start : start + length][:: int(rng.choice([1, -1, 2]))]
            expected = any(np.may_share_memory(array, other) for other in added)
            assert occupied.add(array) == expected
            shared += expected
            added.append(array)
    assert 200 < shared < 2000  # both answers came up


def test_two_dimensions_and_nothing():
    array = np.zeros((4, 6))
    occupied = Occupied()
    assert not occupied.add(array[:, :2])
    assert not occupied.add(array[2:2])
    assert occupied.add(array[::-1, 3:].T)
    assert not occupied.add(np.zeros((4, 6)))
