"""Where an array is not zero: NonZero."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..ir import DType, TypeInfo
from ._core import define_op
from ._helpers import ANY
from ._samples import Draw, Sample
from .suppression import has_fixed_rows

non_zero = define_op(
    "NonZero",
    inputs="x",
    outputs="y count",
    attrs={"padded": 0},
    source="ONNX NonZero-13; `padded` (passes/fixed_rows): as many places as there can be, and how"
    " many of them were found",
)


@non_zero.infer
def _(x: TypeInfo, *, padded: int) -> list[TypeInfo]:
    places = x.size if padded and x.is_static else None
    rank = None if x.shape is None else x.rank
    return [TypeInfo(DType.I64, (rank, places)), TypeInfo(DType.I64, (1,))]


@non_zero.reference
def _(x: np.ndarray, *, padded: int) -> list[np.ndarray]:
    """x of rank r → places (r,n) in the order of memory. `padded`: n is the size of x, and columns
    of −1 end them."""
    places = np.array(np.nonzero(x), np.int64).reshape(x.ndim, -1)
    count = np.array([places.shape[1]])
    if padded:
        missing = x.size - places.shape[1]
        places = np.pad(places, ((0, 0), (0, missing)), constant_values=-1)
    return [places, count]


non_zero.kernel("cpu", "any_non_zero", dtype=ANY, when=has_fixed_rows)


@non_zero.samples
def _(draw: Draw) -> Iterator[Sample]:
    for shape in ((1,), (37,), (3, 5), (2, 3, 4), (4, 0)):
        x = draw(*shape)
        x[draw.rng.integers(0, 3, shape) == 0] = 0
        yield Sample([x], {"padded": 1}, outputs=2)
