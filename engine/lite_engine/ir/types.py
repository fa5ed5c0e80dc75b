"""Element types, shapes and quantization parameters."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from ..errors import ShapeError

#: A dimension is a number, a symbol ("batch"), or None when nothing is known.
Dim = int | str | None
Shape = tuple[Dim, ...]


class DType(str, Enum):
    """Element type of a value. `bf16` arrays are held as their 16 bits in uint16."""

    F32 = "f32"
    F16 = "f16"
    BF16 = "bf16"
    F64 = "f64"
    I8 = "i8"
    U8 = "u8"
    I16 = "i16"
    U16 = "u16"
    I32 = "i32"
    U32 = "u32"
    I64 = "i64"
    U64 = "u64"
    BOOL = "bool"

    def __str__(self) -> str:
        return self.value

    @property
    def np(self) -> np.dtype:
        """NumPy type of the storage."""
        return _TO_NUMPY[self]

    @property
    def itemsize(self) -> int:
        return self.np.itemsize

    @property
    def is_float(self) -> bool:
        return self in (DType.F32, DType.F16, DType.BF16, DType.F64)

    @staticmethod
    def of(array_or_dtype: object) -> DType:
        """The DType of an array or NumPy dtype. Raises ShapeError for strings, objects, complex."""
        given: Any = getattr(array_or_dtype, "dtype", array_or_dtype)
        dtype = np.dtype(given)
        found = _FROM_NUMPY.get(dtype)
        if found is None:
            raise ShapeError(f"element type {dtype} is not supported; cast to one of {_NAMES}")
        return found


_TO_NUMPY: dict[DType, np.dtype] = {
    DType.F32: np.dtype(np.float32),
    DType.F16: np.dtype(np.float16),
    DType.BF16: np.dtype(np.uint16),
    DType.F64: np.dtype(np.float64),
    DType.I8: np.dtype(np.int8),
    DType.U8: np.dtype(np.uint8),
    DType.I16: np.dtype(np.int16),
    DType.U16: np.dtype(np.uint16),
    DType.I32: np.dtype(np.int32),
    DType.U32: np.dtype(np.uint32),
    DType.I64: np.dtype(np.int64),
    DType.U64: np.dtype(np.uint64),
    DType.BOOL: np.dtype(np.bool_),
}
_FROM_NUMPY = {n: d for d, n in _TO_NUMPY.items() if d is not DType.BF16}
_NAMES = " ".join(d.value for d in DType)


@dataclass(frozen=True, eq=False)
class QuantParams:
    """real = (q − zero_point) · scale; `axis` is the channel axis of per-channel parameters.

    scale f32 () or (C,); zero_point of the value's dtype, same shape as scale.
    """

    scale: np.ndarray
    zero_point: np.ndarray
    axis: int | None = None

    def __post_init__(self) -> None:
        if self.scale.shape != self.zero_point.shape:
            raise ShapeError(
                f"quantization scale {self.scale.shape} and zero point "
                f"{self.zero_point.shape} differ in shape"
            )


@dataclass(frozen=True)
class TypeInfo:
    """What is known about a value: element type, shape, and its contents when constant."""

    dtype: DType
    shape: Shape | None
    const: np.ndarray | None = field(default=None, compare=False)

    @staticmethod
    def of(array: np.ndarray) -> TypeInfo:
        return TypeInfo(DType.of(array), array.shape, array)

    @property
    def rank(self) -> int:
        """Number of dimensions. Raises ShapeError when unknown."""
        if self.shape is None:
            raise ShapeError("rank is not known")
        return len(self.shape)

    @property
    def dims(self) -> Shape:
        """The shape. Raises ShapeError when the rank is unknown."""
        if self.shape is None:
            raise ShapeError("shape is not known")
        return self.shape

    @property
    def is_static(self) -> bool:
        return self.shape is not None and all(isinstance(d, int) for d in self.shape)

    @property
    def size(self) -> int:
        """Number of elements. Raises ShapeError when not static."""
        if not self.is_static:
            raise ShapeError(f"shape {format_shape(self.shape)} is not fixed")
        count = 1
        for d in self.shape or ():
            count *= d  # type: ignore[operator, assignment]
        return count

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def with_shape(self, shape: Shape | None) -> TypeInfo:
        return TypeInfo(self.dtype, None if shape is None else tuple(shape))

    def with_dtype(self, dtype: DType) -> TypeInfo:
        return TypeInfo(dtype, self.shape)

    def __str__(self) -> str:
        return f"{self.dtype}[{format_shape(self.shape)}]"


def format_shape(shape: Shape | None) -> str:
    """`1×3×224×224`, `N×?`, `scalar` for rank 0, `*` for unknown rank."""
    if shape is None:
        return "*"
    if not shape:
        return "scalar"
    return "×".join("?" if d is None else str(d) for d in shape)
