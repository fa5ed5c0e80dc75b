"""Copies between host and device, none of which waits.

A device with memory of its own reads and writes host memory fast, and without keeping the caller
waiting, only where the driver has locked it in place. There an input goes through such memory, and
an output is made in it; what the caller gets is that memory, which is taken again when nobody
holds the array any more. A device that shares the host's memory gets and gives plain arrays.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...plan import PlanTensor
from .device import Device
from .enqueue import Call, prepared_copy

#: Blocks of locked memory for one output: an array more that a caller holds is a plain one.
_MOST_HELD = 3
#: More is not locked for one tensor: the system would lack it.
_MOST_BYTES = 1 << 28


@dataclass
class _Block:
    """Locked host memory, mapped for good, and the copy between it and the tensor's buffer."""

    memory: Any
    array: np.ndarray
    call: Call


class _Lent:
    """What an array of a block has as its base, for as long as somebody holds it."""

    def __init__(self, array: np.ndarray) -> None:
        self.__array_interface__ = array.__array_interface__


def _block(device: Device, tensor: PlanTensor, buffer: Any, *, upload: bool) -> _Block | None:
    """None where the device has the host's memory anyway, or the driver locks no more."""
    if not device.own_memory or not 0 < tensor.nbytes <= _MOST_BYTES:
        return None
    cl = device.cl
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.ALLOC_HOST_PTR
    access = cl.map_flags.READ | cl.map_flags.WRITE
    try:
        memory = cl.Buffer(device.context, flags, tensor.nbytes)
        whole, _ = cl.enqueue_map_buffer(
            device.queue, memory, access, 0, (tensor.size,), tensor.dtype.np
        )
    except cl.Error:
        return None  # plain memory does as well, and slower
    array = whole.reshape(tensor.dims)
    return _Block(memory, array, prepared_copy(cl, device.queue, buffer, array, upload))


class Upload:
    """The copies of one host tensor to its buffer."""

    def __init__(self, device: Device, tensor: PlanTensor, buffer: Any) -> None:
        self._device, self._buffer = device, buffer
        self._block = _block(device, tensor, buffer, upload=True)

    def enqueue(self, given: np.ndarray) -> np.ndarray:
        """Enqueues the copy; what it gives has to live until the queue has finished."""
        array = self._ready(given)
        if self._block is None or self._block.call():
            self._noted(self._device.queue, array)  # raises what a status means
        return array

    def timed(self, queue: Any, given: np.ndarray) -> tuple[np.ndarray, Any]:
        """The same on another queue, with the copy's event."""
        array = self._ready(given)
        return array, self._noted(queue, array)

    def _ready(self, given: np.ndarray) -> np.ndarray:
        if self._block is None:
            return np.ascontiguousarray(given).reshape(-1)
        np.copyto(self._block.array, given.reshape(self._block.array.shape))
        return self._block.array

    def _noted(self, queue: Any, array: np.ndarray) -> Any:
        return self._device.cl.enqueue_copy(queue, self._buffer, array, is_blocking=False)


class Download:
    """The copies of one buffer to host arrays."""

    def __init__(self, device: Device, tensor: PlanTensor, buffer: Any) -> None:
        self._device, self._tensor, self.buffer = device, tensor, buffer
        self._free: list[_Block] = []
        self._made = 0

    def enqueue(self) -> np.ndarray:
        """An array that has the numbers when the queue has finished."""
        block, array = self._ready()
        if block is None or block.call():
            self._noted(self._device.queue, array)  # raises what a status means
        return array

    def timed(self, queue: Any) -> tuple[np.ndarray, Any]:
        """The same on another queue, with the copy's event."""
        _, array = self._ready()
        return array, self._noted(queue, array)

    def _ready(self) -> tuple[_Block | None, np.ndarray]:
        block = self._take()
        if block is None:
            return None, np.empty(self._tensor.dims, self._tensor.dtype.np)
        lent = _Lent(block.array)
        weakref.finalize(lent, self._free.append, block).atexit = False
        return block, np.asarray(lent)

    def _noted(self, queue: Any, array: np.ndarray) -> Any:
        return self._device.cl.enqueue_copy(queue, array, self.buffer, is_blocking=False)

    def _take(self) -> _Block | None:
        if self._free:
            return self._free.pop()
        if self._made == _MOST_HELD:
            return None
        block = _block(self._device, self._tensor, self.buffer, upload=False)
        self._made = _MOST_HELD if block is None else self._made + 1
        return block


__all__ = ["Download", "Upload"]
