"""The distance between rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..errors import ShapeError
from ..ir import TypeInfo
from ._core import define_op
from ._records import Cost
from ._samples import Draw, Sample

pairwise_distance = define_op(
    "PairwiseDistance",
    inputs="a b",
    attrs={"eps": 1e-6},
    source="PyTorch PairwiseDistance with p = 2: y = ‖a − b + ε‖₂ over the last axis",
)


@pairwise_distance.infer
def _(a: TypeInfo, b: TypeInfo, *, eps: float) -> TypeInfo:
    if a.rank < 1 or a.shape != b.shape:
        raise ShapeError(f"expected two inputs of one shape, found {a.shape} and {b.shape}")
    return a.with_shape(a.dims[:-1])


@pairwise_distance.reference
def _(a: np.ndarray, b: np.ndarray, *, eps: float) -> np.ndarray:
    """y = sqrt(sum((a − b + eps)²))"""
    d = a.astype(np.float64) - b + eps
    return np.asarray(np.sqrt((d * d).sum(-1))).astype(a.dtype)


@pairwise_distance.cost
def _(a: TypeInfo, b: TypeInfo, *, eps: float) -> Cost:
    return Cost(flops=4 * a.size)


pairwise_distance.kernel("cpu", "f32_pairwise_distance")
pairwise_distance.kernel("opencl", "pairwise_distance", dtype="f32,f16")


@pairwise_distance.samples
def _(draw: Draw) -> Iterator[Sample]:
    for shape in ((1, 1), (5, 7), (3, 16), (2, 3, 33), (4, 1000)):
        yield Sample([draw(*shape), draw(*shape)])
    yield Sample([draw(3, 9), draw(3, 9)], {"eps": 0.25})
