"""The structures of the C ABI (`lite_runtime.h`), and what Python makes of them."""

from __future__ import annotations

import ctypes

import numpy as np
from lite_messages import tr

from ...errors import ShapeError
from ...ir import DType

#: What the numbers of the program format mean (plan/program.py), from 1.
_DTYPES = tuple(DType)
_ROLES = ("input", "output", "weight", "arena", "device")


class Options(ctypes.Structure):
    _fields_ = (
        ("threads", ctypes.c_int32),
        ("pin", ctypes.c_int32),
        ("max_isa", ctypes.c_char_p),
        ("fail_allocation", ctypes.c_int64),
        ("memory_limit_bytes", ctypes.c_int64),
        ("l2_bytes", ctypes.c_int64),
        ("backend", ctypes.c_int32),
        ("device", ctypes.c_char_p),
        ("cache_dir", ctypes.c_char_p),
        ("timed", ctypes.c_int32),
        ("precision", ctypes.c_char_p),
        ("tune", ctypes.c_int32),
    )


class RawTensor(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("dtype", ctypes.c_int32),
        ("role", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("dims", ctypes.c_int64 * 8),
        ("pitch", ctypes.c_int64),
        ("halo", ctypes.c_int32 * 4),
        ("bytes", ctypes.c_size_t),
    )


class RawStep(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("op", ctypes.c_char_p),
        ("kernel", ctypes.c_char_p),
        ("variant", ctypes.c_char_p),
        ("start_ns", ctypes.c_int64),
        ("end_ns", ctypes.c_int64),
    )


class RawKernel(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("ops", ctypes.c_char_p), ("isa", ctypes.c_char_p))


class MemoryInfo(ctypes.Structure):
    """What a program takes: `weight_bytes` are those it reads; wall time of its last run."""

    _fields_ = (
        ("arena_bytes", ctypes.c_size_t),
        ("packed_bytes", ctypes.c_size_t),
        ("scratch_bytes", ctypes.c_size_t),
        ("weight_bytes", ctypes.c_size_t),
        ("run_ns", ctypes.c_int64),
    )


class TensorInfo:
    """A tensor of a loaded program, number `tensor`; `dims` are physical."""

    def __init__(self, tensor: int, raw: RawTensor) -> None:
        self.tensor = tensor
        self.name: str = raw.name.decode(errors="replace")
        self.dtype = _DTYPES[raw.dtype - 1]
        self.role = _ROLES[raw.role - 1]
        self.dims: tuple[int, ...] = tuple(raw.dims[: raw.rank])
        self.nbytes: int = raw.bytes


class StepInfo:
    """A step of a loaded program; `variant` is the full kernel name, instruction set included."""

    def __init__(self, raw: RawStep) -> None:
        self.name: str = raw.name.decode(errors="replace")
        self.op: str = raw.op.decode(errors="replace")
        self.kernel: str = raw.kernel.decode()
        self.variant: str = raw.variant.decode()
        self.start_ns: int = raw.start_ns
        self.end_ns: int = raw.end_ns


def is_dense(array: np.ndarray) -> bool:
    """Whether its elements are contiguous, in order, and aligned to their size."""
    flags = array.flags
    return flags.c_contiguous and flags.aligned


def dense(array: np.ndarray) -> np.ndarray:
    """The array, or a copy where it is not dense."""
    return array if is_dense(array) else np.require(array, requirements=("C", "ALIGNED"))


def address_of(array: np.ndarray) -> int:
    """Of the first byte of a dense array. `array.ctypes` takes three times as long, which a call of
    a small network would notice."""
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(array.data))
    except (TypeError, ValueError):  # read-only, empty, or of a type that has no buffer
        return int(array.ctypes.data)


def room_for(info: TensorInfo) -> np.ndarray:
    """An output's memory. Raises ShapeError when there is not enough."""
    try:
        return np.empty(info.dims, info.dtype.np)
    except (MemoryError, ValueError):
        raise ShapeError(
            tr(
                "output '{info}' is {dtype}{dims}: more memory than is available",
                info=info.name,
                dtype=info.dtype,
                dims=list(info.dims),
            )
        ) from None
