"""Packed weights on a device: executables that read the same array, packed in the same way, share a
buffer. They belong to several input sizes of a model, or to several predictors."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, Protocol
from weakref import WeakValueDictionary

import numpy as np

from .constants import Constant

#: Less is not shared.
_FEWEST_BYTES = 4096


class _Device(Protocol):
    def buffer(self, nbytes: int, data: np.ndarray | None = None) -> Any: ...


@dataclass(eq=False)
class WeightBuffer:
    """Other executables find it while one holds it. Holding `base` keeps other arrays from taking
    its address."""

    buffer: Any
    base: np.ndarray | None = None


class WeightBuffers:
    """Of one device."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[tuple[Any, ...], WeightBuffer] = WeakValueDictionary()
        self._lock = threading.Lock()

    def get(self, device: _Device, constant: Constant) -> WeightBuffer:
        """Raises BackendUnavailableError when there is not enough memory."""
        if constant.nbytes < _FEWEST_BYTES:
            return WeightBuffer(device.buffer(constant.nbytes, constant.value))
        key = _key(constant)
        with self._lock:
            found = self._known.get(key)
        if found is None:
            made = device.buffer(constant.nbytes, constant.value)
            found = WeightBuffer(made, constant.base)
            with self._lock:
                self._known[key] = found
        return found


def _key(constant: Constant) -> tuple[Any, ...]:
    base = constant.base
    at = base.__array_interface__["data"][0]
    return (at, base.shape, base.strides, base.dtype.str, _sum(base), constant.ops, constant.dtype)


def _sum(array: np.ndarray) -> int:
    """The sum of an array's bytes, eight at a time: somebody may have written to it meanwhile."""
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    whole = flat.size // 8 * 8
    rest = int(flat[whole:].sum(dtype=np.uint64))
    return int(flat[:whole].view(np.uint64).sum(dtype=np.uint64)) + rest
