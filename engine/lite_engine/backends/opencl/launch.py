"""What a step becomes on the device: kernel calls as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...ir import DType
from ...plan import Plan, PlanTensor
from .constants import Constant


@dataclass
class Launch:
    """One kernel call. `args` are PlanTensors, constants and images (uploaded once), scratch
    memory, ints and floats; `options` are `#define` lines put before the source."""

    file: str
    kernel: str
    args: list[Any]
    global_size: tuple[int, ...]
    options: str = ""
    local_size: tuple[int, ...] | None = None


#: Below it a number may be a stride, a pad or a window, which a kernel's way through depends on.
_SMALL = 16


def shape_class(launch: Launch) -> str:
    """What two launches of one program have in common when they take the same ways through it:
    the same small numbers (windows, strides, pads), and sizes in the same power of two, divisible
    by the same one of 1, 2, 4, 8 and 16 (vectors, tiles)."""
    numbers = [n for n in launch.args if isinstance(n, (int, np.integer))]
    return ",".join(_class(int(n)) for n in (*numbers, *launch.global_size))


def _class(number: int) -> str:
    if abs(number) < _SMALL:
        return str(number)
    even = next(v for v in (16, 8, 4, 2, 1) if number % v == 0)
    return f"{'-' * (number < 0)}2^{abs(number).bit_length()}:{even}"


#: Work-items of a group where a kernel leaves its size open.
_GROUP_ITEMS = 128


def grouped(grid: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(grid rounded up, group size) for a kernel that checks its bounds. Left alone, a driver
    takes a divisor of the grid, which for a prime number is 1. Groups of a row are all of one size:
    PoCL compiles a kernel for every size."""
    wide = _GROUP_ITEMS if len(grid) == 1 else 1
    while wide < min(grid[0], _GROUP_ITEMS):
        wide *= 2
    group = (wide, _GROUP_ITEMS // wide, 1)[: len(grid)]
    return tuple(-(-n // g) * g for n, g in zip(grid, group)), group


@dataclass(eq=False)
class Scratch:
    """Device memory that a step's launches share among themselves, of `dtype` numbers."""

    nbytes: int
    dtype: DType = DType.F32


@dataclass(frozen=True, eq=False)
class Image:
    """An RGBA image2d of `dtype` numbers (f32, f16, u32): constant, (height, width, 4) of that type
    or the same bytes of another, or scratch."""

    width: int
    height: int
    dtype: DType
    data: Constant | None = None

    @classmethod
    def of(cls, data: Constant) -> Image:
        return cls(data.shape[1], data.shape[0], data.dtype, data)


def place(tensor: PlanTensor | Scratch, width: int) -> list[int]:
    """Elements from row to row of `width` elements, and before the first row: other than `width`
    and 0 for a part of a Concat or Split, which lies in the whole (plan/views.py)."""
    if isinstance(tensor, PlanTensor) and tensor.dims and tensor.pitch != tensor.dims[-1]:
        return [tensor.pitch, tensor.alias_offset // tensor.dtype.itemsize]
    return [width, 0]


def lies_in(plan: Plan, piece: PlanTensor, whole: PlanTensor, at: int) -> bool:
    """Whether a part was laid where it belongs: `at` elements behind the start of the whole. Either
    may be a view of a view."""
    root, start = _lies(plan, whole)
    return _lies(plan, piece) == (root, start + at * whole.dtype.itemsize)


def _lies(plan: Plan, tensor: PlanTensor) -> tuple[int, int]:
    """The owner of its storage, and bytes from its start."""
    start = 0
    while tensor.alias_of is not None:
        start += tensor.alias_offset
        tensor = plan.tensors[tensor.alias_of]
    return tensor.index, start


def element_type(tensor: PlanTensor | Scratch) -> str:
    """Integer type of a tensor's element size, for copies."""
    return {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong"}[tensor.dtype.itemsize]
