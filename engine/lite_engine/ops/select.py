"""Choosing and ordering: TopK, Unique, CumSum, CumProd."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import Dim, DType, TypeInfo
from ._core import OpDef, define_op, get_op
from ._helpers import COUNTED, known_ints, normalise_axis, same_type
from ._samples import Draw, Sample

top_k = define_op(
    "TopK", inputs="x k", outputs="values indices", attrs={"axis": -1, "largest": 1, "sorted": 1},
    attr_inputs=("k",), transpose_rule="axis", source="ONNX TopK-24", postprocess="choice",
)  # fmt: skip


@top_k.infer
def _(x: TypeInfo, k: TypeInfo, *, axis: int, **_: Any) -> list[TypeInfo]:
    at = normalise_axis(axis, x.rank)
    n = known_ints(k)
    size = x.dims[at]
    if n is not None and isinstance(size, int) and not 0 <= n[0] <= size:
        raise ShapeError(
            tr(
                "k must be between 0 and {size}, the size of the axis, found {number}",
                number=n[0],
                size=size,
            )
        )
    dims: tuple[Dim, ...] = (*x.dims[:at], None if n is None else n[0], *x.dims[at + 1 :])
    return [x.with_shape(dims), TypeInfo(DType.I64, dims)]


@top_k.reference
def _(x: np.ndarray, k: np.ndarray, *, axis: int, largest: int, sorted: int) -> Any:
    """The k largest (or smallest) elements along axis, best first; equal ones keep their order"""
    count = int(k.ravel()[0])
    if largest:
        # a stable descending order: sort the reversed axis, then reverse
        order = x.shape[axis] - 1 - np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis)
    else:
        order = np.argsort(x, axis, kind="stable")
    order = np.take(order, range(count), axis)
    return np.take_along_axis(x, order, axis), order.astype(np.int64)


top_k.kernel("cpu", "any_top_k", dtype=COUNTED)


unique = define_op(
    "Unique",
    inputs="x",
    outputs="y indices inverse_indices counts",
    attrs={"axis": None, "sorted": 1},
    source="ONNX Unique-11",
)


@unique.infer
def _(x: TypeInfo, *, axis: int | None, sorted: int, n_outputs: int) -> list[TypeInfo]:
    if axis is None:
        y = x.with_shape((None,))
    else:
        at = normalise_axis(axis, x.rank)
        y = x.with_shape((*x.dims[:at], None, *x.dims[at + 1 :]))
    index = TypeInfo(DType.I64, (None,))
    return [y, index, index, index][:n_outputs]


@unique.reference
def _(x: np.ndarray, *, axis: int | None, sorted: int, n_outputs: int) -> Any:
    """Distinct elements (or slices along axis), first positions, where each went, how often"""
    y, first, inverse, counts = np.unique(
        x, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    inverse = inverse.ravel()
    if not sorted:
        order = np.argsort(first)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        y, first, counts = np.take(y, order, axis or 0), first[order], counts[order]
        inverse = rank[inverse]
    outs = [y, *(v.astype(np.int64) for v in (first, inverse, counts))]
    return outs[:n_outputs]


def _cumulative(name: str, ufunc: np.ufunc, start: int, source: str) -> OpDef:
    op = define_op(
        name, inputs="x axis", attrs={"exclusive": 0, "reverse": 0}, layout="axis",
        attr_inputs=("axis",), axis_attrs=("axis",), transpose_rule="axis_input", source=source,
    )  # fmt: skip
    op.infer(same_type)

    @op.reference
    def _(x: np.ndarray, axis: np.ndarray, *, exclusive: int, reverse: int) -> np.ndarray:
        """Running sum or product along axis, without the element itself when exclusive"""
        at = normalise_axis(int(axis.ravel()[0]), x.ndim)
        y = np.flip(x, at) if reverse else x
        if exclusive:
            head = np.full_like(np.take(y, [0], at), start)
            y = np.concatenate([head, np.take(y, range(y.shape[at] - 1), at)], at)
        y = ufunc.accumulate(y, at, dtype=x.dtype)
        return np.flip(y, at).copy() if reverse else y

    op.kernel("cpu", "any_cumulate", dtype=COUNTED)
    return op


_cumulative("CumSum", np.add, 0, "ONNX CumSum-14")
_cumulative("CumProd", np.multiply, 1, "ONNX CumProd-26")


@top_k.samples
def _(draw: Draw) -> Iterator[Sample]:
    for largest in (0, 1):
        for shape, axis, k in (((3, 1500), -1, 7), ((4, 20, 3), 1, 20), ((9,), 0, 1)):
            attrs = {"axis": axis, "largest": largest}
            yield Sample([draw(*shape), np.array([k])], attrs, outputs=2)


def _cumulative_samples(draw: Draw) -> Iterator[Sample]:
    for attrs in ({}, {"reverse": 1}, {"exclusive": 1}, {"exclusive": 1, "reverse": 1}):
        for axis in (0, 1, -1):
            yield Sample([draw(3, 4, 5), np.array(axis)], attrs)


for _name in ("CumSum", "CumProd"):
    get_op(_name).samples(_cumulative_samples)
