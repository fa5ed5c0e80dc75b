"""Constants of launches: a weight of the model and what is done to it, as data.

A model file stores the weight once, whatever number of devices want it packed in ways of their own;
packing happens where the launch runs. `Constant.value` does it here, `opencl/constants.cc` of the
native runtime on a device, with the same bits.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ...ir import DType
from ...plan.program import DTYPE_CODES

#: G of Winograd's F(4,3) at the points 0, ±3/4, ±3/2, ∞ of kernels/winograd.cl: weights (3) →
#: points (6). Lavin 2016, section 4.3.
_WEIGHT_POINTS = np.array(
    [[64 / 81, 0, 0], [-128 / 243, -32 / 81, -8 / 27], [-128 / 243, 32 / 81, -8 / 27],
     [32 / 243, 16 / 81, 8 / 27], [32 / 243, -16 / 81, 8 / 27], [0, 0, 1]],
)  # fmt: skip


#: Operations in the order of their numbers in files.
KINDS = (
    "reshape", "transpose", "pad", "half", "float", "scale", "winograd", "reverse", "flip", "widen",
)  # fmt: skip


class Op(NamedTuple):
    """One thing done to an array. By `kind`, `values` are

    reshape    the new shape
    transpose  the axis that each axis is taken from
    pad        the new shape: zeros after the elements of each axis
    half       nothing: float32 → float16, ties to even
    float      nothing: float16 → float32
    scale      one factor, as the bits of a float32
    winograd   nothing: (O, 3, 3, C) → (36, C, O), G·w·Gᵀ in double precision, then float32
    reverse    one axis, whose elements come in the opposite order
    flip       nothing: u8 → i8 with the highest bit flipped, that is less 128
    widen      one number, subtracted: i8 or u8 → i16
    """

    kind: str
    values: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Constant:
    """`ops`, in order, applied to a weight of the model or a small array made from weights."""

    base: np.ndarray
    ops: tuple[Op, ...]
    shape: tuple[int, ...]
    dtype: DType

    @classmethod
    def of(cls, array: np.ndarray) -> Constant:
        return cls(array, (), array.shape, DType.of(array))

    @classmethod
    def floats(cls, array: np.ndarray) -> Constant:
        """As float32, which needs no operation of a float32 array."""
        if array.dtype not in (np.float32, np.float16):
            array = array.astype(np.float32)
        return cls.of(array).cast(DType.F32)

    @classmethod
    def zeros(cls, count: int) -> Constant:
        return cls.of(np.empty(0, np.float32)).padded(count)

    @property
    def base_dtype(self) -> DType:
        return DType.of(self.base)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def reshape(self, *shape: int) -> Constant:
        """One of `shape` may be -1."""
        if -1 in shape:
            rest = -math.prod(shape)
            shape = tuple(self.size // rest if d == -1 else d for d in shape)
        assert math.prod(shape) == self.size, (self.shape, shape)
        return self._with("reshape", shape, shape) if shape != self.shape else self

    def transpose(self, *axes: int) -> Constant:
        shape = tuple(self.shape[a] for a in axes)
        return self._with("transpose", axes, shape) if axes != tuple(sorted(axes)) else self

    @property
    def T(self) -> Constant:
        return self.transpose(*reversed(range(len(self.shape))))

    def padded(self, *shape: int) -> Constant:
        """Zeros after the elements of each axis, up to `shape`."""
        assert all(new >= old for new, old in zip(shape, self.shape, strict=True))
        return self._with("pad", shape, shape) if shape != self.shape else self

    def cast(self, dtype: DType) -> Constant:
        if dtype is self.dtype:
            return self
        kind = {DType.F16: "half", DType.F32: "float"}[dtype]
        return self._with(kind, (), self.shape, dtype)

    def scaled(self, factor: float) -> Constant:
        """Times a float32."""
        bits = int(np.float32(factor).view(np.uint32))
        return self._with("scale", (bits,), self.shape) if factor != 1 else self

    def reversed(self, axis: int) -> Constant:
        "The elements of an axis in the opposite order."
        return self._with("reverse", (axis,), self.shape) if self.shape[axis] > 1 else self

    def winograd(self) -> Constant:
        """The 36 points of 3x3 weights (O, 3, 3, C): (36, C, O)."""
        count, _, _, channels = self.shape
        return self._with("winograd", (), (36, channels, count))

    def flipped(self) -> Constant:
        """Bytes of u8 less 128, as i8."""
        return self._with("flip", (), self.shape, DType.I8)

    def widened(self, zero: int) -> Constant:
        """Bytes less a zero point, as i16."""
        return self._with("widen", (zero & 0xFFFFFFFF,), self.shape, DType.I16)

    def _with(
        self, kind: str, values: Sequence[int], shape: tuple[int, ...], dtype: DType | None = None
    ) -> Constant:
        ops = (*self.ops, Op(kind, tuple(values)))
        return Constant(self.base, ops, shape, dtype or self.dtype)

    @cached_property
    def recipe(self) -> bytes:
        """As a program has it (native_plan.py), without the weight."""
        dims = self.base.shape or (1,)
        head = DTYPE_CODES[self.base_dtype], len(dims), len(self.ops), 0
        row = struct.pack(f"<4B{len(dims)}I", *head, *dims)
        for op in self.ops:
            count = len(op.values)
            row += struct.pack(f"<4B{count}I", KINDS.index(op.kind), count, 0, 0, *op.values)
        return row

    @cached_property
    def value(self) -> np.ndarray:
        """C-contiguous, of `shape` and `dtype`."""
        array = self.base
        for op in self.ops:
            array = _applied(op, array)
        return np.ascontiguousarray(array)


def _applied(op: Op, array: np.ndarray) -> np.ndarray:
    match op.kind:
        case "reshape":
            return array.reshape(op.values)
        case "transpose":
            return array.transpose(op.values)
        case "pad":
            return np.pad(array, [(0, n - d) for n, d in zip(op.values, array.shape)])
        case "half":
            with np.errstate(over="ignore"):  # infinite in half precision, as on a device
                return array.astype(np.float16)
        case "float":
            return array.astype(np.float32)
        case "scale":
            return array * np.uint32(op.values[0]).view(np.float32)
        case "winograd":
            return _winograd(array)
        case "reverse":
            return np.flip(array, op.values)
        case "flip":
            return (array ^ np.uint8(0x80)).view(np.int8)
        case "widen":
            zero = np.uint32(op.values[0]).view(np.int32)
            return (array.astype(np.int32) - zero).astype(np.int16)
    raise AssertionError(op.kind)


def _winograd(taps: np.ndarray) -> np.ndarray:
    """Sums in one order, so that every implementation rounds alike."""
    count, _, _, channels = taps.shape
    kernel = taps.astype(np.float64).transpose(1, 2, 3, 0)  # (3, 3, C, O)
    out = np.empty((6, 6, channels, count), np.float32)
    for p, g in enumerate(_WEIGHT_POINTS):
        row = g[0] * kernel[0] + g[1] * kernel[1] + g[2] * kernel[2]
        for q, h in enumerate(_WEIGHT_POINTS):
            out[p, q] = h[0] * row[0] + h[1] * row[1] + h[2] * row[2]
    return out.reshape(36, channels, count)
