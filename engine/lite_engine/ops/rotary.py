"""TurnPairs: pairs of numbers turned by their angles, as rotary positions do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import Node, TypeInfo
from ._core import define_op
from ._helpers import broadcast_shapes
from ._records import Cost
from ._samples import Draw, Sample

turn_pairs = define_op(
    "TurnPairs",
    inputs="x cos sin",
    attrs={"interleaved": 0},
    transpose_rule="turn",
    choices={"interleaved": (0, 1)},
    source="ours; Su 2021 (RoFormer) section 3.4.2, written x·cos + turned(x)·sin",
)


@turn_pairs.infer
def _(x: TypeInfo, cos: TypeInfo, sin: TypeInfo, **_: Any) -> TypeInfo:
    whole = broadcast_shapes(x.shape, cos.shape, sin.shape)
    if x.is_static and whole is not None and whole != x.shape:
        raise ShapeError(tr("the angles have more axes or rows than what they turn"))
    return x


@turn_pairs.reference
def _(x: np.ndarray, cos: np.ndarray, sin: np.ndarray, *, interleaved: int) -> np.ndarray:
    """x·cos + t·sin; of a pair (a, b) of x, which are neighbours or lie half a row apart, t has
    (−b, a)"""
    turned = np.empty_like(x)
    half = x.shape[-1] // 2
    first, second = (
        (slice(0, None, 2), slice(1, None, 2)) if interleaved else (slice(half), slice(half, None))
    )
    turned[..., first], turned[..., second] = -x[..., second], x[..., first]
    return (x * cos + turned * sin).astype(x.dtype)


turn_pairs.cost(lambda x, *_, **__: Cost(flops=3 * x.size))


def _angles(node: Node, types: list[TypeInfo | None]) -> bool | str:
    """Of whole rows, the same for cosines and sines."""
    x, cos, sin = types[:3]
    if x is None or cos is None or sin is None or not x.is_static:
        return tr("the shapes are not known")
    whole = cos.shape == sin.shape and cos.dims[-1:] == x.dims[-1:] and x.rank <= 4
    return whole or tr("the angles do not repeat along whole rows of up to four axes")


turn_pairs.kernel("cpu", "f32_turn_pairs", when=_angles, why=tr("one pass over the pairs"))
turn_pairs.kernel(
    "opencl", "turn_pairs", dtype="f32,f16", when=_angles, why=tr("one pass over the pairs")
)


@turn_pairs.samples
def _(draw: Draw) -> Iterator[Sample]:
    for x, angles in (
        ((2, 3, 5, 8), (5, 8)), ((1, 5, 3, 64), (1, 5, 1, 64)), ((2, 7, 6), (2, 7, 6)),
        ((9, 4), (4,)), ((2, 3, 5, 2), (2, 1, 1, 2)),
    ):  # fmt: skip
        for interleaved in turn_pairs.choices["interleaved"]:
            constants = [draw.f32(*angles), draw.f32(*angles)]
            yield Sample([draw(*x), *constants], {"interleaved": interleaved}, constant=(1, 2))
    yield Sample([draw(2, 3, 5, 6), draw(2, 1, 5, 6), draw(2, 1, 5, 6)])
