"""Suppression of overlapping boxes. Names and semantics are Paddle's; sizes depend on the data,
except where `padded` asks for as many rows as there can be (passes/fixed_rows)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import DType, TypeInfo
from ._core import define_op
from ._samples import Draw, Sample
from .paddle_box_coder import iou
from .suppression import best_first, has_fixed_rows, sample_boxes, sample_scores

_COMMON = {
    "background_label": 0, "score_threshold": 0.0, "nms_top_k": -1, "keep_top_k": -1,
    "normalized": 1, "padded": 0,
}  # fmt: skip


def _rows(scores: TypeInfo, attrs: Mapping[str, Any]) -> list[TypeInfo]:
    """Types of (label, score, box) rows, their indices and their number per image."""
    rows, images = None, scores.dims[0] if scores.rank == 3 else None
    if attrs["padded"]:
        if scores.rank != 3 or not scores.is_static:
            raise ShapeError(tr("padded rows need scores of a known shape (N,C,M)"))
        rows = _most_rows(scores.shape or (), attrs)
    return [
        TypeInfo(DType.F32, (rows, 6)),
        TypeInfo(DType.I32, (rows, 1)),
        TypeInfo(DType.I32, (images,)),
    ]


multiclass_nms = define_op(
    "multiclass_nms",
    inputs="boxes scores",
    outputs="out index count",
    attrs={**_COMMON, "nms_threshold": 0.3, "nms_eta": 1.0},
    source="Paddle multiclass_nms, multiclass_nms2, multiclass_nms3",
    postprocess="choice",
)


@multiclass_nms.infer
def _(boxes: TypeInfo, scores: TypeInfo, **attrs: Any) -> list[TypeInfo]:
    return _rows(scores, attrs)


def _most_rows(scores: Sequence[Any], attrs: Mapping[str, Any]) -> int:
    """Rows that scores (N, C, M) can give."""
    images, classes, boxes = (int(d) for d in scores)
    if -1 < attrs["nms_top_k"] < boxes:
        boxes = attrs["nms_top_k"]
    found = boxes * (classes - (0 <= attrs["background_label"] < classes))
    return images * (min(found, attrs["keep_top_k"]) if attrs["keep_top_k"] > -1 else found)


def keep_by_overlap(
    boxes: np.ndarray, order: np.ndarray, threshold: float, eta: float, normalized: bool
) -> list[int]:
    """Greedy suppression: a box stays when it overlaps no kept one by more than the threshold.

    The threshold shrinks by `eta` while it is above one half.
    """
    kept: list[int] = []
    for index in order:
        if kept and iou(boxes[kept], boxes[index], normalized).max() > threshold:
            continue
        kept.append(int(index))
        if eta < 1 and threshold > 0.5:
            threshold *= eta
    return kept


def _best(scores: np.ndarray, threshold: float, count: int) -> np.ndarray:
    """Indices above the threshold, best first, at most `count` (−1: all)."""
    order = best_first(scores, scores > threshold)
    return order[:count] if count > -1 else order


def _per_class(boxes: np.ndarray, label: int) -> np.ndarray:
    """Boxes (M, 4), or of one class from (M, C, 4)."""
    return boxes[:, label] if boxes.ndim == 3 else boxes


def _one_image(boxes: np.ndarray, scores: np.ndarray, attrs: dict[str, Any]) -> list[list[float]]:
    """Rows (label, score, x1, y1, x2, y2, index), by label."""
    rows = []
    for label in range(scores.shape[0]):
        if label == attrs["background_label"]:
            continue
        own = _per_class(boxes, label)
        order = _best(scores[label], attrs["score_threshold"], attrs["nms_top_k"])
        for i in keep_by_overlap(
            own, order, attrs["nms_threshold"], attrs["nms_eta"], bool(attrs["normalized"])
        ):
            rows.append([label, scores[label, i], *own[i], i])
    if -1 < attrs["keep_top_k"] < len(rows):
        rows = sorted(rows, key=lambda r: -r[1])[: attrs["keep_top_k"]]
        rows.sort(key=lambda r: r[0])
    return rows


@multiclass_nms.reference
def _(boxes: np.ndarray, scores: np.ndarray, **attrs: Any) -> list[np.ndarray]:
    """boxes (N, M, 4) or (N, M, C, 4), scores (N, C, M) → rows (K, 6), indices (K, 1), rows per
    image (N,). `padded`: K is the most there can be, and rows of label and index −1 end them."""
    images = [_one_image(b, s, attrs) for b, s in zip(boxes, scores)]
    return _collect(images, boxes, scores, attrs)


multiclass_nms.kernel("cpu", "f32_multiclass_nms", when=has_fixed_rows)


def _collect(
    images: list[list[list[float]]], boxes: np.ndarray, scores: np.ndarray, attrs: dict[str, Any]
) -> list[np.ndarray]:
    flat = [[*r[:6], i * boxes.shape[1] + r[6]] for i, rows in enumerate(images) for r in rows]
    table = np.asarray(flat, np.float64).reshape(-1, 7)
    rows, index = table[:, :6].astype(boxes.dtype), table[:, 6:].astype(np.int32)
    counts = np.asarray([len(rows) for rows in images], np.int32)
    if attrs["padded"]:
        missing = ((0, _most_rows(scores.shape, attrs) - len(rows)), (0, 0))
        rows, index = np.pad(rows, missing), np.pad(index, missing, constant_values=-1)
        rows[counts.sum() :, 0] = -1
    return [rows, index, counts]


matrix_nms = define_op(
    "matrix_nms",
    inputs="boxes scores",
    outputs="out index count",
    attrs={**_COMMON, "post_threshold": 0.0, "use_gaussian": 0, "gaussian_sigma": 2.0},
    source="Paddle matrix_nms (Wang 2020, SOLOv2)",
    postprocess="choice",
)


@matrix_nms.infer
def _(boxes: TypeInfo, scores: TypeInfo, **attrs: Any) -> list[TypeInfo]:
    return _rows(scores, attrs)


def _decayed(boxes: np.ndarray, scores: np.ndarray, attrs: dict[str, Any]) -> np.ndarray:
    """Scores (best first) lowered by the overlap with better boxes of the same class."""
    overlap = np.tril(iou(boxes[:, None], boxes[None], bool(attrs["normalized"])), -1)
    worst = overlap.max(axis=1, initial=0.0)
    if attrs["use_gaussian"]:
        decay = np.exp((worst[None] ** 2 - overlap**2) * attrs["gaussian_sigma"])
    else:
        decay = (1 - overlap) / (1 - worst[None])
    lower = np.tril(np.ones_like(overlap, bool), -1)
    return np.asarray(scores * np.where(lower, decay, 1.0).min(axis=1, initial=1.0))


@matrix_nms.reference
def _(boxes: np.ndarray, scores: np.ndarray, **attrs: Any) -> list[np.ndarray]:
    """boxes (N, M, 4), scores (N, C, M) → rows (K, 6) best first, indices (K, 1), counts (N,);
    `padded` as of multiclass_nms"""
    images = []
    for own, table in zip(boxes, scores):
        rows: list[list[float]] = []
        for label in range(table.shape[0]):
            order = _best(table[label], attrs["score_threshold"], attrs["nms_top_k"])
            if label == attrs["background_label"] or not len(order):
                continue
            for i, score in zip(order, _decayed(own[order], table[label, order], attrs)):
                if score > attrs["post_threshold"]:
                    rows.append([label, score, *own[i], i])
        rows.sort(key=lambda r: -r[1])
        images.append(rows[: attrs["keep_top_k"]] if attrs["keep_top_k"] > -1 else rows)
    return _collect(images, boxes, scores, attrs)


matrix_nms.kernel("cpu", "f32_matrix_nms", when=has_fixed_rows)


# ---- sample calls


def _paddle_attrs(keep: int, most: int, background: int, normalized: int) -> dict[str, Any]:
    return {
        "background_label": background, "score_threshold": 0.25, "nms_top_k": most,
        "keep_top_k": keep, "normalized": normalized, "padded": 1,
    }  # fmt: skip


@multiclass_nms.samples
def _(draw: Draw) -> Iterator[Sample]:
    for normalized, per_class in itertools.product((0, 1), (False, True)):
        for images, boxes, classes, keep, most, eta, background in (
            (1, 40, 4, 20, 15, 1.0, 0), (2, 30, 3, -1, -1, 0.9, -1), (1, 6, 2, 300, 400, 1.0, 5),
            (2, 5, 1, 10, 10, 1.0, 0),
        ):  # fmt: skip
            attrs = _paddle_attrs(keep, most, background, normalized)
            sets = (classes,) if per_class else ()
            scores = sample_scores(draw, images, classes, boxes)
            inputs = [sample_boxes(draw, images, boxes, *sets), scores]
            attrs |= {"nms_threshold": 0.6, "nms_eta": eta}
            yield Sample(inputs, attrs, outputs=3, constant=())


@matrix_nms.samples
def _(draw: Draw) -> Iterator[Sample]:
    for normalized, gaussian in itertools.product((0, 1), (0, 1)):
        for images, boxes, classes, keep, most, background in (
            (1, 40, 4, 20, 15, 0), (2, 30, 3, -1, -1, -1), (1, 6, 2, 300, 400, 5),
            (2, 5, 1, 10, 10, 0),
        ):  # fmt: skip
            attrs = _paddle_attrs(keep, most, background, normalized)
            attrs |= {"post_threshold": 0.1, "use_gaussian": gaussian, "gaussian_sigma": 1.5}
            scores = sample_scores(draw, images, classes, boxes)
            inputs = [sample_boxes(draw, images, boxes), scores]
            yield Sample(inputs, attrs, outputs=3, constant=())
