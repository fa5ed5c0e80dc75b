"""Memory for a program's outputs, run after run.

The system clears every page that it hands out, and takes large ones back as soon as an array is
dropped: a decoder's step of 0.4 MB of keys and values per layer waited longer for pages than for
its products. Memory that nobody refers to any more is therefore given out again.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from .native_types import TensorInfo, room_for

_SMALLEST, _LARGEST = 16 << 10, 64 << 20  # bytes of an output whose memory is kept
_KEPT = 2  # of each output: `y = run(x)` still refers to the last result while it runs

#: Memory, and the last array that was made of it, of bytes. What views refer to is that array:
#: NumPy looks for their base as far as there are arrays.
_Room = tuple[memoryview, weakref.ref[np.ndarray[Any, Any]]]


class Rooms:
    """`take` gives arrays whose memory no caller holds, not even by a view."""

    def __init__(self, outputs: Sequence[TensorInfo]) -> None:
        self._outputs = outputs
        self._kept: list[list[_Room]] = [[] for _ in outputs]

    def take(self) -> list[np.ndarray]:
        """An array for each output. Raises ShapeError when there is not enough memory."""
        return [
            self._array(info, kept) if _SMALLEST <= info.nbytes <= _LARGEST else room_for(info)
            for info, kept in zip(self._outputs, self._kept)
        ]

    @staticmethod
    def _array(info: TensorInfo, kept: list[_Room]) -> np.ndarray:
        memory = _free(kept) or room_for(info).reshape(-1).view(np.uint8).data
        base = np.frombuffer(memory, np.uint8)
        kept.append((memory, weakref.ref(base)))
        del kept[:-_KEPT]
        return base.view(info.dtype.np).reshape(info.dims)


def _free(kept: list[_Room]) -> memoryview | None:
    """Takes memory without an array out of the list; of two threads only one gets it."""
    for _ in range(len(kept)):
        try:
            room = kept.pop(0)
        except IndexError:
            break
        if room[1]() is None:
            return room[0]
        kept.append(room)
    return None
