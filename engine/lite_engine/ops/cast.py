"""Changing the element type: Cast, CastLike, BitCast."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import DType, Node, TypeInfo
from ._core import REQUIRED, define_op
from ._helpers import ANY
from ._narrow import FORMATS, encode, wrapped
from ._records import Cost
from ._samples import Draw, Sample

cast = define_op(
    "Cast",
    transpose_rule="same",
    carries=slice(1),
    inputs="x",
    attrs={"to": REQUIRED, "saturate": 1, "round_mode": "up"},
    layout="elementwise",
    source="ONNX Cast-25",
)


def convert(x: np.ndarray, to: DType, saturate: int = 1, round_mode: str = "nearest") -> np.ndarray:
    """x in another element type: floats to integers truncate towards zero, integers wrap around.

    bfloat16 stays float32 here; the registry rounds it. `saturate` says what floats of 8 bits make
    of what is too large, `round_mode` how powers of two (f8e8m0) round.
    """
    if to is DType.BF16:
        return x.astype(np.float32)
    if to in FORMATS:
        rounding = round_mode if to is DType.F8E8M0 else "nearest"
        return encode(x, to, saturate=bool(saturate), rounding=rounding)
    if to.is_narrow:
        return wrapped(convert(x, DType.I64), to)
    if x.dtype.kind == "f" and to.np.kind in "iu":
        whole = np.trunc(x.astype(np.float64))
        whole = np.where(np.isfinite(whole), whole, 0)
        if to.itemsize < 8:
            return whole.astype(np.int64).astype(to.np)
        return whole.astype(to.np)
    return x.astype(to.np)


def _target(to: Any) -> DType:
    if not isinstance(to, DType):
        raise ShapeError(tr("element type {to!r} is not known", to=to))
    return to


@cast.infer
def _(x: TypeInfo, *, to: DType, **_: Any) -> TypeInfo:
    return TypeInfo(_target(to), x.shape)


@cast.reference
def _(x: np.ndarray, *, to: DType, saturate: int, round_mode: str) -> np.ndarray:
    """y = x as element type `to`"""
    return convert(x, _target(to), saturate, round_mode)


def _counted(node: Node, types: list[TypeInfo | None]) -> bool | str:
    """The kernel reads integers as int64: of u64, only the bits come through, not the number."""
    x, like = types[0], types[1] if len(types) > 1 else None
    to = node.attrs["to"] if like is None else like.dtype
    if x is not None and x.dtype is DType.U64 and isinstance(to, DType) and to.is_float:
        return tr("its input is {attrs}", attrs=x.dtype)
    return True


cast.cost(lambda x, **_: Cost(flops=x.size))
cast.kernel("cpu", "cast", dtype=ANY, when=_counted)

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


cast_like.kernel("cpu", "cast", dtype=ANY, when=_counted)

bit_cast = define_op("BitCast", inputs="x", attrs={"to": REQUIRED}, source="ONNX BitCast-26")
bit_cast.infer(lambda x, *, to: TypeInfo(_target(to), x.shape))


@bit_cast.reference
def _(x: np.ndarray, *, to: DType) -> np.ndarray:
    """The same bits read as another element type of the same size"""
    if to.itemsize != x.itemsize:
        raise ShapeError(tr("{dtype} and {to} have different sizes", dtype=x.dtype, to=to))
    return np.ascontiguousarray(x).view(to.np).reshape(x.shape)


_ON_DEVICE = ANY.replace("bf16,", "").replace("f64,", "")


def _to_device_type(node: Node, types: list[TypeInfo | None]) -> bool | str:
    return node.attrs["to"] in _ON_DEVICE.split(",") or tr(
        "its output is {attrs}", attrs=node.attrs["to"]
    )


cast.kernel("opencl", "cast", dtype=_ON_DEVICE, when=_to_device_type)


@cast.samples
def _(draw: Draw) -> Iterator[Sample]:
    for to in ANY.split(","):
        for shape in ((1,), (17,), (2, 3, 5, 19)):
            yield Sample([draw(*shape)], {"to": DType(to)})


@cast_like.samples
def _(draw: Draw) -> Iterator[Sample]:
    for to in (np.float32, np.uint8, np.int64):
        yield Sample([draw(3, 17), np.zeros(2, to)])
