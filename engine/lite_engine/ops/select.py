"""Choosing and ordering: TopK, Unique, CumSum, CumProd, NonMaxSuppression."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ShapeError
from ..ir import Dim, DType, TypeInfo
from ._core import Cost, OpDef, define_op
from ._helpers import COUNTED, known_ints, normalise_axis, same_type

top_k = define_op(
    "TopK", inputs="x k", outputs="values indices", attrs={"axis": -1, "largest": 1, "sorted": 1},
    attr_inputs=("k",), source="ONNX TopK-24",
)  # fmt: skip


@top_k.infer
def _(x: TypeInfo, k: TypeInfo, *, axis: int, **_: Any) -> list[TypeInfo]:
    at = normalise_axis(axis, x.rank)
    n = known_ints(k)
    size = x.dims[at]
    if n is not None and isinstance(size, int) and not 0 <= n[0] <= size:
        raise ShapeError(f"k is {n[0]} on an axis of {size}")
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
        attr_inputs=("axis",), axis_attrs=("axis",), source=source,
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

nms = define_op(
    "NonMaxSuppression",
    inputs="boxes scores max_output_boxes_per_class? iou_threshold? score_threshold?",
    attrs={"center_point_box": 0},
    source="ONNX NonMaxSuppression-11",
)
nms.infer(lambda boxes, *_, **__: TypeInfo(DType.I64, (None, 3)))
nms.cost(lambda boxes, scores, *_, **__: Cost(flops=16 * scores.size))


def corners(boxes: np.ndarray, center_point_box: int) -> np.ndarray:
    """(n,4) boxes as (low, low, high, high) of both axes."""
    if center_point_box:
        middle, half = boxes[:, :2], boxes[:, 2:] / 2
        return np.concatenate([middle - half, middle + half], 1)
    low = np.minimum(boxes[:, :2], boxes[:, 2:])
    return np.concatenate([low, np.maximum(boxes[:, :2], boxes[:, 2:])], 1)


def overlap(box: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Intersection over union of one box (4,) with others (n,4); 0 for empty ones."""
    low = np.maximum(box[:2], others[:, :2])
    high = np.minimum(box[2:], others[:, 2:])
    shared = np.prod(np.maximum(high - low, 0), 1)
    total = np.prod(box[2:] - box[:2]) + np.prod(others[:, 2:] - others[:, :2], 1) - shared
    return np.where(total > 0, shared / np.where(total > 0, total, 1), 0)


def suppress(boxes: np.ndarray, order: np.ndarray, limit: int, threshold: float) -> list[int]:
    """Indices kept of `order` (best first): at most `limit`, none overlapping a better one."""
    kept: list[int] = []
    while len(order) and len(kept) < limit:
        best, rest = int(order[0]), order[1:]
        kept.append(best)
        order = rest[overlap(boxes[best], boxes[rest]) <= threshold]
    return kept


@nms.reference
def _(
    boxes: np.ndarray,
    scores: np.ndarray,
    most: np.ndarray | None,
    iou: np.ndarray | None,
    least: np.ndarray | None,
    *,
    center_point_box: int,
) -> np.ndarray:
    """boxes (B,N,4), scores (B,C,N) → (n,3) of batch, class, box: greedy, best score first"""
    limit = 0 if most is None else int(most.ravel()[0])
    threshold = 0.0 if iou is None else float(iou.ravel()[0])
    out = []
    for b in range(boxes.shape[0]):
        square = corners(boxes[b], center_point_box)
        for c in range(scores.shape[1]):
            order = np.argsort(-scores[b, c], kind="stable")
            if least is not None:
                order = order[scores[b, c, order] > float(least.ravel()[0])]
            out += [(b, c, i) for i in suppress(square, order, limit, threshold)]
    return np.array(out, np.int64).reshape(-1, 3)
