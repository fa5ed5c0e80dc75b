"""Changing the element type: Cast, CastLike, BitCast."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ShapeError
from ..ir import DType, TypeInfo
from ._core import REQUIRED, Cost, define_op
from ._helpers import ANY

cast = define_op(
    "Cast",
    inputs="x",
    attrs={"to": REQUIRED, "saturate": 1, "round_mode": "up"},
    layout="elementwise",
    source="ONNX Cast-25",
)


def convert(x: np.ndarray, to: DType) -> np.ndarray:
    """x in another element type: floats to integers truncate towards zero, integers wrap around.

    bfloat16 stays float32 here; the registry rounds it.
    """
    if to is DType.BF16:
        return x.astype(np.float32)
    if x.dtype.kind == "f" and to.np.kind in "iu":
        whole = np.trunc(x.astype(np.float64))
        whole = np.where(np.isfinite(whole), whole, 0)
        if to.itemsize < 8:
            return whole.astype(np.int64).astype(to.np)
        return whole.astype(to.np)
    return x.astype(to.np)


def _target(to: Any) -> DType:
    if not isinstance(to, DType):
        raise ShapeError(f"element type {to!r} is not known")
    return to


@cast.infer
def _(x: TypeInfo, *, to: DType, **_: Any) -> TypeInfo:
    return TypeInfo(_target(to), x.shape)


@cast.reference
def _(x: np.ndarray, *, to: DType, saturate: int, round_mode: str) -> np.ndarray:
    """y = x as element type `to`"""
    return convert(x, _target(to))


cast.cost(lambda x, **_: Cost(flops=x.size))
cast.kernel("cpu", "cast", dtype=ANY)

cast_like = define_op(
    "CastLike",
    inputs="x like",
    attrs={"saturate": 1, "round_mode": "up"},
    source="ONNX CastLike-25",
)
cast_like.infer(lambda x, like, **_: TypeInfo(like.dtype, x.shape))


@cast_like.reference
def _(x: np.ndarray, like: np.ndarray, **_: Any) -> np.ndarray:
    """y = x in the element type of `like`"""
    return convert(x, DType.of(like))


cast_like.kernel("cpu", "cast", dtype=ANY)

bit_cast = define_op("BitCast", inputs="x", attrs={"to": REQUIRED}, source="ONNX BitCast-26")
bit_cast.infer(lambda x, *, to: TypeInfo(_target(to), x.shape))


@bit_cast.reference
def _(x: np.ndarray, *, to: DType) -> np.ndarray:
    """The same bits read as another element type of the same size"""
    if to.itemsize != x.itemsize:
        raise ShapeError(f"{x.dtype} and {to} differ in size")
    return np.ascontiguousarray(x).view(to.np).reshape(x.shape)


cast.kernel("opencl", "cast", dtype="f32,f16,i8,u8,i16,u16,i32,u32,i64,u64,bool")
