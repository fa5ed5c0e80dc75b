"""Shapes and quantization parameters."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from .dtype import DType

#: A dimension is a number, a symbol ("batch"), or None when nothing is known.
Dim = int | str | None
Shape = tuple[Dim, ...]
_NUMBER = {int}


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
                tr(
                    "quantization scale {shape} and zero point {differ} differ in shape",
                    shape=self.scale.shape,
                    differ=self.zero_point.shape,
                )
            )


class Integers(NamedTuple):
    """Integers that a constant's real numbers were made from: real = q · scale, scale f32 with one
    number for each place of `axis` (C,), or one for all (1,)."""

    q: np.ndarray
    scale: np.ndarray
    axis: int


class TypeInfo:
    """What is known about a value: element type, shape, and its contents when constant.

    Nobody changes one. Many are made and asked whether they are static, so that it is a plain
    class, not a frozen dataclass, and tells that at once.
    """

    __slots__ = ("const", "dtype", "is_static", "shape")

    def __init__(self, dtype: DType, shape: Shape | None, const: np.ndarray | None = None) -> None:
        self.dtype = dtype
        self.shape = shape
        self.const = const
        #: whether every dimension is a number
        self.is_static = shape is not None and _NUMBER.issuperset(map(type, shape))

    def __eq__(self, other: object) -> bool:
        """Of element type and shape; contents are not compared."""
        if not isinstance(other, TypeInfo):
            return NotImplemented
        return self.dtype is other.dtype and self.shape == other.shape

    def __hash__(self) -> int:
        return hash((self.dtype, self.shape))

    def __repr__(self) -> str:
        return f"TypeInfo({self.dtype!r}, {self.shape!r}, {self.const!r})"

    @staticmethod
    def of(array: np.ndarray) -> TypeInfo:
        return TypeInfo(DType.of(array), array.shape, array)

    @property
    def is_const(self) -> bool:
        """Whether its contents are known, which says nothing of them."""
        return self.const is not None

    @property
    def rank(self) -> int:
        """Number of dimensions. Raises ShapeError when unknown."""
        if self.shape is None:
            raise ShapeError(tr("rank is not known"))
        return len(self.shape)

    @property
    def dims(self) -> Shape:
        """The shape. Raises ShapeError when the rank is unknown."""
        if self.shape is None:
            raise ShapeError(tr("shape is not known"))
        return self.shape

    @property
    def size(self) -> int:
        """Number of elements. Raises ShapeError when not static."""
        if not self.is_static:
            raise ShapeError(tr("shape {shape} is not fixed", shape=format_shape(self.shape)))
        return math.prod(self.shape)  # type: ignore[arg-type]

    @property
    def nbytes(self) -> int:
        """Bytes of its elements. Raises ShapeError when not static."""
        if self.is_static:  # asked for of each operand of each node
            return math.prod(self.shape) * self.dtype.itemsize  # type: ignore[arg-type]
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


def fits(declared: Shape, given: Shape) -> bool:
    """Whether a shape is the declared one, in which sizes may be open."""
    return len(declared) == len(given) and all(
        not isinstance(d, int) or d == g for d, g in zip(declared, given)
    )


def misfit(name: str, declared: TypeInfo, given: Shape) -> ShapeError:
    """What is said of an input that was given in another shape."""
    wanted = declared.shape or ()
    alone = bool(wanted) and wanted[:1] != given[:1] and fits((None, *wanted[1:]), given)
    return ShapeError(
        tr(
            "input {name} is {type}, got shape {shape}",
            name=name,
            type=declared,
            shape=format_shape(given),
        ),
        fix=tr("if its first size is a batch, `lite edit --batch` changes it") if alone else "",
    )
