"""Element types."""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy
import numpy as np
from lite_messages import tr

from ..errors import ShapeError


class DType(str, Enum):
    """Element type of a value. `bf16` arrays are held as their 16 bits in uint16.

    Those of 8 bits and fewer after `bool` are narrow: held one element per byte, as their bits
    (floats) or as int8 and uint8. Operators convert and move them; no kernel computes in them.
    """

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
    F8E4M3FN = "f8e4m3fn"
    F8E4M3FNUZ = "f8e4m3fnuz"
    F8E5M2 = "f8e5m2"
    F8E5M2FNUZ = "f8e5m2fnuz"
    F8E8M0 = "f8e8m0"
    F4E2M1 = "f4e2m1"
    I4 = "i4"
    U4 = "u4"
    I2 = "i2"
    U2 = "u2"

    # Written below: they are asked for so often that properties would take a twentieth of planning.
    np: numpy.dtype  # of the storage
    itemsize: int
    is_float: bool
    is_narrow: bool  # whether it is one of the types that are storage only

    def __str__(self) -> str:
        return self.value

    #: There is one object of each: Enum's own hash, of the name, is a call of Python, and types are
    #: part of many keys.
    __hash__ = object.__hash__

    @staticmethod
    def of(array_or_dtype: object) -> DType:
        """The DType of an array or NumPy dtype. Raises ShapeError for strings, objects, complex."""
        given: Any = getattr(array_or_dtype, "dtype", array_or_dtype)
        dtype = np.dtype(given)
        found = _FROM_NUMPY.get(dtype)
        if found is None:
            raise ShapeError(
                tr("element type {dtype} is not supported", dtype=dtype),
                fix=tr("cast to one of {names}", names=_NAMES),
            )
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
_NARROW = {d: np.dtype(np.int8 if d[0] == "i" else np.uint8) for d in DType if d not in _TO_NUMPY}
_TO_NUMPY |= _NARROW
for _dtype, _storage in _TO_NUMPY.items():
    _dtype.np, _dtype.itemsize = _storage, _storage.itemsize
    _dtype.is_float = _dtype in (DType.F32, DType.F16, DType.BF16, DType.F64)
    _dtype.is_narrow = _dtype in _NARROW
_NAMES = " ".join(d.value for d in DType if d not in _NARROW)

#: Of integers that are held in a byte of their own, but have fewer bits.
BITS = {DType.I4: 4, DType.U4: 4, DType.I2: 2, DType.U2: 2}


def limits(dtype: DType) -> tuple[int, int]:
    """Least and largest number of an integer type, narrow ones included."""
    bits = BITS.get(dtype)
    if bits is None:
        return int(np.iinfo(dtype.np).min), int(np.iinfo(dtype.np).max)
    return (0, (1 << bits) - 1) if dtype.np.kind == "u" else (-(1 << bits - 1), (1 << bits - 1) - 1)
