"""Suppression of boxes that overlap a better one: ONNX's NonMaxSuppression, and what others of that
kind share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import DType, TypeInfo
from ._core import define_op
from ._helpers import known_ints
from ._records import Cost
from ._samples import Draw, Sample


def best_first(scores: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Indices of the scores that a mask chooses, best first; equal ones keep their order."""
    order = np.flatnonzero(chosen)
    return order[np.argsort(-scores[order], kind="stable")]


def suppress(corners: np.ndarray, order: np.ndarray, iou: float, limit: int) -> list[int]:
    """Greedy: of the boxes (A,4) low, low, high, high in `order` those that overlap no better one
    by more than `iou`, at most `limit`. Boxes without area overlap nothing."""
    # by columns, best first: what a kept box is held against is one stretch of memory
    top, left, bottom, right = np.ascontiguousarray(corners[order].T)
    areas = (bottom - top) * (right - left)
    stands = np.ones(len(order), bool)
    kept: list[int] = []
    for i in range(len(order)):
        if len(kept) >= limit:
            break
        if not stands[i]:
            continue
        kept.append(int(order[i]))
        rest = slice(i + 1, None)
        high = np.minimum(bottom[rest], bottom[i]) - np.maximum(top[rest], top[i])
        wide = np.minimum(right[rest], right[i]) - np.maximum(left[rest], left[i])
        shared = np.maximum(high, 0) * np.maximum(wide, 0)
        whole = areas[rest] + areas[i] - shared
        solid = (areas[rest] > 0) & (areas[i] > 0)
        stands[rest] &= np.where(solid, shared / np.where(solid, whole, 1), 0) <= iou
    return kept


nms = define_op(
    "NonMaxSuppression",
    inputs="boxes scores max_output_boxes_per_class? iou_threshold? score_threshold?",
    outputs="y count",
    attrs={"center_point_box": 0, "padded": 0},
    attr_inputs=("max_output_boxes_per_class", "iou_threshold", "score_threshold"),
    source="ONNX NonMaxSuppression-11; `padded` (passes/fixed_rows): as many rows as there can be,"
    " and how many of them were found",
    postprocess="choice",
)


@nms.infer
def _(boxes: TypeInfo, scores: TypeInfo, most: TypeInfo | None = None, *_: Any, padded: int,
      **attrs: Any) -> list[TypeInfo]:  # fmt: skip
    for name, x in (("boxes", boxes), ("scores", scores)):
        if x.shape is not None and x.rank != 3:
            raise ShapeError(tr("expected {name} of rank 3, found {type}", name=name, type=x))
    if boxes.shape is not None and isinstance(boxes.shape[2], int) and boxes.shape[2] != 4:
        raise ShapeError(tr("expected boxes of 4 numbers, found {type}", type=boxes))
    limit = [0] if most is None else known_ints(most)
    rows = None
    if padded and limit is not None and scores.rank == 3 and scores.is_static:
        rows = _most_rows(scores.shape or (), limit[0])
    return [TypeInfo(DType.I64, (rows, 3)), TypeInfo(DType.I64, (1,))]


def _most_rows(scores: Any, limit: int) -> int:
    """Rows that scores (B, C, N) can give."""
    return int(scores[0]) * int(scores[1]) * max(0, min(limit, int(scores[2])))


nms.cost(lambda boxes, scores, *_, **__: Cost(flops=16 * scores.size))


def to_corners(boxes: np.ndarray, center_point_box: int) -> np.ndarray:
    """(n,4) boxes as (low, low, high, high) of both axes."""
    if center_point_box:
        middle, half = boxes[:, :2], boxes[:, 2:] / 2
        return np.concatenate([middle - half, middle + half], 1)
    low = np.minimum(boxes[:, :2], boxes[:, 2:])
    return np.concatenate([low, np.maximum(boxes[:, :2], boxes[:, 2:])], 1)


@nms.reference
def _(
    boxes: np.ndarray,
    scores: np.ndarray,
    most: np.ndarray | None,
    iou: np.ndarray | None,
    least: np.ndarray | None,
    *,
    center_point_box: int,
    padded: int,
) -> list[np.ndarray]:
    """boxes (B,N,4), scores (B,C,N) → (n,3) of batch, class, box: greedy, best score first.
    `padded`: n is the most there can be, and rows of −1 end them. A NaN score is no candidate."""
    limit = 0 if most is None else int(most.ravel()[0])
    threshold = 0.0 if iou is None else float(iou.ravel()[0])
    out = []
    for b in range(boxes.shape[0]):
        corners = to_corners(boxes[b], center_point_box)
        for c in range(scores.shape[1]):
            own = scores[b, c]
            high = own == own if least is None else own > float(least.ravel()[0])
            found = suppress(corners, best_first(own, high), threshold, limit)
            out += [(b, c, i) for i in found]
    rows = np.array(out, np.int64).reshape(-1, 3)
    count = np.array([len(rows)])
    if padded:
        missing = _most_rows(scores.shape, limit) - len(rows)
        rows = np.pad(rows, ((0, missing), (0, 0)), constant_values=-1)
    return [rows, count]


def has_fixed_rows(node: Any, types: Any) -> bool | str:
    """Condition of kernels whose outputs have as many rows as there can be."""
    return bool(node.attrs.get("padded")) or tr("the number of its rows depends on data")


nms.kernel("cpu", "f32_non_max_suppression", when=has_fixed_rows)


# ---- sample calls


def sample_scores(draw: Draw, *shape: int) -> np.ndarray:
    """In steps of an eighth: many are equal, also to the thresholds; a few are NaN."""
    x = (draw.rng.integers(0, 9, shape) / 8).astype(np.float32)
    x.reshape(-1)[draw.rng.permutation(x.size)[: x.size // 50]] = np.nan
    return x


def sample_boxes(draw: Draw, *shape: int) -> np.ndarray:
    """Corners on a small grid, (*shape, 4); some boxes have an extent of 0 or less."""
    low = draw.rng.integers(0, 6, (*shape, 2))
    return np.concatenate([low, low + draw.rng.integers(-1, 7, low.shape)], -1).astype(np.float32)


def sample_anchors(draw: Draw, count: int) -> np.ndarray:
    """Centres and sizes (count, 4): several at one point, one without extent."""
    centres = draw.rng.integers(0, 4, (count, 2)) / 4
    out = np.concatenate([centres, np.full((count, 2), 0.3)], 1)
    out[count // 2, 2:] = 0
    return out.astype(np.float32)


@nms.samples
def _(draw: Draw) -> Iterator[Sample]:
    for centred in (0, 1):
        for images, boxes, classes, most, iou, least in (
            (1, 40, 4, 10, 0.4, 0.25), (2, 30, 1, 99, 0.0, -1.0), (1, 6, 3, 2, 1.0, None),
            (1, 5, 2, 3, None, 2.0),
        ):  # fmt: skip
            given = [None if v is None else np.array([v], np.float32) for v in (iou, least)]
            scores = sample_scores(draw, images, classes, boxes)
            inputs = [sample_boxes(draw, images, boxes), scores, np.array([most]), *given]
            attrs = {"center_point_box": centred, "padded": 1}
            yield Sample(inputs, attrs, outputs=2, constant=(2, 3, 4))
