"""Sample calls of an operator, made from its registration: what the tests of its kernels run.

    @conv.samples
    def _(draw):
        for channels in (3, 16, 17):
            yield Sample([draw(1, channels, 5, 7), draw.f32(8, channels, 3, 3)], {"pads": [1] * 4})

An operator whose inputs are alike (elementwise ones, functions along an axis or of an image) needs
no such function: shapes below, at and above a vector's width, broadcasting, every axis and every
one of its `choices` follow from the schema.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ..ir import DType
from ..ir.bfloat16 import f32_to_bf16
from ._core import REQUIRED, OpDef


class Bf16(np.ndarray):
    """bfloat16 as its 16 bits."""


class Sample(NamedTuple):
    """One call. `constant` lists the inputs that are constants; None: once those after the first,
    once those that kernels want as attributes."""

    inputs: Sequence[np.ndarray | None]
    attrs: Mapping[str, Any] = MappingProxyType({})
    outputs: int = 1
    constant: tuple[int, ...] | None = None


class Draw:
    """Random arrays. `dtype` is the element type that a kernel is tested with."""

    def __init__(self, dtype: DType, seed: str) -> None:
        self.dtype = dtype
        self.rng = np.random.default_rng(zlib.crc32(seed.encode()))

    def __call__(self, *shape: int) -> np.ndarray:
        """Small numbers of `dtype`: their sums and most products fit it."""
        if self.dtype is DType.BF16:
            return f32_to_bf16(self.f32(*shape)).view(Bf16)
        kind = self.dtype.np.kind
        if kind == "f":
            return np.asarray(self.rng.normal(0, 2, shape)).astype(self.dtype.np)
        low, high = {"b": (0, 2), "u": (0, 12)}.get(kind, (-9, 10))
        return np.asarray(self.rng.integers(low, high, shape)).astype(self.dtype.np)

    def f32(self, *shape: int, scale: float = 1.0) -> np.ndarray:
        return np.asarray(self.rng.normal(0, scale, shape)).astype(np.float32)

    def weights(self, *shape: int) -> np.ndarray:
        """float32 weights (O, …) whose sums over all but the first axis stay near 1."""
        return self.f32(*shape, scale=float(np.prod(shape[1:])) ** -0.5)

    def ints(self, low: int, high: int, *shape: int, dtype: Any = np.int64) -> np.ndarray:
        """From `low` up to, not including, `high`."""
        return np.asarray(self.rng.integers(low, high, shape)).astype(dtype)

    def full(self, *shape: int) -> np.ndarray:
        """Every value that an integer `dtype` has."""
        info = np.iinfo(self.dtype.np)
        return self.ints(info.min, int(info.max) + 1, *shape, dtype=self.dtype.np)

    def scalar(self, value: float, dtype: Any = None) -> np.ndarray:
        """One number, of `dtype` when none is given."""
        if dtype is None and self.dtype is DType.BF16:
            return f32_to_bf16(np.array(value, np.float32)).view(Bf16)
        return np.array(value, self.dtype.np if dtype is None else dtype)

    def zero_point(self, value: int) -> np.ndarray:
        """Of a quantized tensor: integers of 16 bits have none."""
        return self.scalar(0 if self.dtype is DType.I16 else value)

    def scaled(self, *shape: int, x_scale: float = 0.03, y_scale: float = 0.02) -> list[np.ndarray]:
        """x, x_scale, x_zero_point, y_scale, y_zero_point of a quantized operator."""
        return [
            self.full(*shape),
            self.scalar(x_scale, np.float32),
            self.zero_point(4),
            self.scalar(y_scale, np.float32),
            self.zero_point(5),
        ]


def ints(*values: int) -> np.ndarray:
    """An input of numbers of type i64."""
    return np.array(values, np.int64)


#: What a function of single numbers must not lose: signs of zero, infinities, NaN, large numbers.
SPECIAL = np.array([0, -0.0, np.inf, -np.inf, np.nan, 88, -88, 104, 1e30, -1e30, 0.5], np.float32)

_ROWS = ((1,), (7,), (16,), (33,), (2, 3, 5, 19), (), (0, 3))
_PAIRS = (
    ((5,), (5,)), ((2, 3, 7, 17), (2, 3, 7, 17)), ((2, 3, 5, 33), (33,)), ((2, 3, 5, 33), (1,)),
    ((1,), (4, 9)), ((2, 1, 5, 1), (3, 1, 19)), ((2, 5, 6, 7), (2, 5, 1, 1)), ((3, 1), (1, 4)),
    ((1, 4, 4, 3), (1, 1, 1, 3)), ((), (7,)), ((), ()), ((0, 3), (3,)),
)  # fmt: skip
_LONG = ((1, 1, 1, 8200), (1, 2, 3, 8200))  # more than a piece of work of one thread
_ALONG = ((16,), (3, 37), (2, 5, 6, 19), (4, 1), (3, 1000))
_IMAGES = ((1, 3, 5, 7), (2, 16, 6, 5), (1, 33, 4, 9))


def samples(op: OpDef, dtype: DType) -> Iterator[Sample]:
    """Calls of an operator with inputs of an element type; none where its schema does not say
    enough and it has no `samples` of its own."""
    draw = Draw(dtype, f"{op.name} {dtype}")
    if op._samples is not None:
        yield from op._samples(draw)
        return
    plain = [n for n in op.inputs if not n.endswith("?") and n not in op.attr_inputs]
    if REQUIRED in op.attrs.values() or set(plain) & set(op.attr_inputs):
        return
    if op.layout == "elementwise":
        yield from _elementwise(op, draw, 2 if op.is_variadic else len(plain))
    elif len(plain) == 1 and not op.is_variadic:
        yield from _of_one(op, draw)


def _elementwise(op: OpDef, draw: Draw, count: int) -> Iterator[Sample]:
    for attrs in _variants(op):
        if count == 1:
            for shape in _ROWS if not attrs else _ROWS[-3:]:
                yield Sample([draw(*shape)], attrs)
            if draw.dtype is DType.F32:
                yield Sample([SPECIAL], attrs)
        else:
            pairs = _PAIRS if not attrs else _PAIRS[1:3]
            for pair in (*pairs, _LONG) if draw.dtype is DType.F32 and not attrs else pairs:
                shapes = itertools.islice(itertools.cycle(pair), count)
                yield Sample([draw(*shape) for shape in shapes], attrs)


def _of_one(op: OpDef, draw: Draw) -> Iterator[Sample]:
    axis = next((a for a in op.axis_attrs if isinstance(op.attrs.get(a), int)), "")
    for attrs in _variants(op, axis):
        for shape in _IMAGES if op.layout == "channels_last" else _ALONG:
            for at in range(-1, len(shape) - 1) if axis else (None,):
                yield Sample([draw(*shape)], attrs if at is None else {**attrs, axis: at})


def _variants(op: OpDef, axis: str = "") -> Iterator[dict[str, Any]]:
    """The defaults; then each attribute on its own with its other choices, a factor with another
    number, a switch the other way."""
    yield {}
    for name, default in op.attrs.items():
        others: Sequence[Any] = ()
        if name in op.choices:
            others = [c for c in op.choices[name] if c != default]
        elif type(default) is float:
            others = [0.5 * default + 0.25]
        elif default in (0, 1) and type(default) in (int, bool) and name != axis:
            others = [1 - default]
        for other in others:
            yield {name: other}
