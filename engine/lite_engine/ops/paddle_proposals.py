"""Region proposals of two-stage detectors. Names and semantics are Paddle's."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir import DType, TypeInfo
from ._core import REQUIRED, define_op
from .paddle_nms import keep_by_overlap

generate_proposals = define_op(
    "generate_proposals",
    inputs="scores deltas im_shape anchors variances",
    outputs="rois probabilities count",
    attrs={
        "pre_nms_topN": 6000, "post_nms_topN": 1000, "nms_thresh": 0.5, "min_size": 0.1, "eta": 1.0,
        "pixel_offset": 1,
    },
    source="Paddle generate_proposals and generate_proposals_v2",
)  # fmt: skip

#: Largest log-scale of a decoded box: ln(1000 / 16).
_MAX_LOG = float(np.log(1000.0 / 16.0))


@generate_proposals.infer
def _(scores: TypeInfo, *_: TypeInfo, **attrs: Any) -> list[TypeInfo]:
    return [
        TypeInfo(DType.F32, (None, 4)),
        TypeInfo(DType.F32, (None, 1)),
        TypeInfo(DType.I32, (scores.dims[0],)),
    ]


def _decode(
    anchors: np.ndarray, deltas: np.ndarray, variances: np.ndarray, extra: float
) -> np.ndarray:
    size = anchors[:, 2:] - anchors[:, :2] + extra
    centre = anchors[:, :2] + size / 2
    t = deltas * variances
    middle = t[:, :2] * size + centre
    extent = np.exp(np.minimum(t[:, 2:], _MAX_LOG)) * size
    return np.concatenate([middle - extent / 2, middle + extent / 2 - extra], axis=1)


@generate_proposals.reference
def _(
    scores: np.ndarray, deltas: np.ndarray, im_shape: np.ndarray, anchors: np.ndarray,
    variances: np.ndarray, **attrs: Any,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """scores (N, A, H, W), deltas (N, 4A, H, W), im_shape (N, 2…), anchors (H, W, A, 4)

    → rois (R, 4), probabilities (R, 1), rois per image (N,)
    """
    extra = 1.0 if attrs["pixel_offset"] else 0.0
    boxes_of, scores_of, counts = [], [], []
    flat_anchors, flat_variances = anchors.reshape(-1, 4), variances.reshape(-1, 4)
    for score, delta, shape in zip(scores, deltas, im_shape):
        a = score.shape[0]
        probabilities = score.transpose(1, 2, 0).reshape(-1)
        offsets = delta.reshape(a, 4, *delta.shape[1:]).transpose(2, 3, 0, 1).reshape(-1, 4)
        order = np.argsort(-probabilities, kind="stable")
        if attrs["pre_nms_topN"] > 0:
            order = order[: attrs["pre_nms_topN"]]
        boxes = _decode(flat_anchors[order], offsets[order], flat_variances[order], extra)
        limit = np.asarray([shape[1] - extra, shape[0] - extra] * 2, boxes.dtype)
        boxes = np.clip(boxes, 0, limit)
        size = boxes[:, 2:] - boxes[:, :2] + extra
        kept = np.flatnonzero((size >= max(attrs["min_size"], 1.0)).all(axis=1))
        best = keep_by_overlap(boxes, kept, attrs["nms_thresh"], attrs["eta"], not extra)
        if attrs["post_nms_topN"] > 0:
            best = best[: attrs["post_nms_topN"]]
        boxes_of.append(boxes[best])
        scores_of.append(probabilities[order][best])
        counts.append(len(best))
    rois = np.concatenate(boxes_of).astype(scores.dtype)
    return rois, np.concatenate(scores_of)[:, None], np.asarray(counts, np.int32)


distribute = define_op(
    "distribute_fpn_proposals",
    inputs="rois count?",
    outputs="restore *levels",
    attrs={"min_level": REQUIRED, "max_level": REQUIRED, "refer_level": REQUIRED,
           "refer_scale": REQUIRED, "pixel_offset": 1},
    source="Paddle distribute_fpn_proposals; restore index first, then rois, then counts per level",
)  # fmt: skip


@distribute.infer
def _(rois: TypeInfo, count: TypeInfo | None, **attrs: Any) -> list[TypeInfo]:
    levels = attrs["max_level"] - attrs["min_level"] + 1
    images = count.dims[0] if count is not None and count.shape is not None else 1
    return [
        TypeInfo(DType.I32, (rois.dims[0], 1)),
        *[TypeInfo(rois.dtype, (None, 4))] * levels,
        *[TypeInfo(DType.I32, (images,))] * levels,
    ]


@distribute.reference
def _(rois: np.ndarray, count: np.ndarray | None, **attrs: Any) -> list[np.ndarray]:
    """level = ⌊log2(√area / refer_scale + 1e-8)⌋ + refer_level, kept inside [min, max]"""
    extra = 1.0 if attrs["pixel_offset"] else 0.0
    size = rois[:, 2:] - rois[:, :2] + extra
    scale = np.sqrt(np.where((size < 0).any(axis=1), 0, size.prod(axis=1)))
    level = np.floor(np.log2(scale / attrs["refer_scale"] + 1e-8)) + attrs["refer_level"]
    level = np.clip(level, attrs["min_level"], attrs["max_level"]).astype(int)
    images = (
        np.repeat(np.arange(len(count)), count) if count is not None else np.zeros(len(rois), int)
    )
    total = int(images.max(initial=0)) + 1 if count is None else len(count)
    order: list[int] = []
    parts, counts = [], []
    for number in range(attrs["min_level"], attrs["max_level"] + 1):
        chosen = np.flatnonzero(level == number)
        order.extend(chosen.tolist())
        parts.append(rois[chosen])
        counts.append(np.bincount(images[chosen], minlength=total).astype(np.int32))
    restore = np.empty((len(rois), 1), np.int32)
    restore[order, 0] = np.arange(len(rois))
    return [restore, *parts, *counts]


collect = define_op(
    "collect_fpn_proposals",
    inputs="*parts",
    outputs="rois count",
    attrs={"levels": REQUIRED, "post_nms_topN": REQUIRED},
    source="Paddle collect_fpn_proposals; inputs are rois, scores and counts, each of all levels",
)


@collect.infer
def _(*parts: TypeInfo, levels: int, **attrs: Any) -> list[TypeInfo]:
    images = parts[2 * levels].dims[0] if len(parts) > 2 * levels else 1
    return [TypeInfo(parts[0].dtype, (None, 4)), TypeInfo(DType.I32, (images,))]


@collect.reference
def _(*parts: np.ndarray, levels: int, **attrs: Any) -> tuple[np.ndarray, np.ndarray]:
    """The best rois of all levels, by score, then in the order of the images"""
    rois, scores = (np.concatenate(parts[i * levels : (i + 1) * levels]) for i in (0, 1))
    counts = parts[2 * levels :] or [np.asarray([len(p)], np.int32) for p in parts[:levels]]
    images = np.concatenate([np.repeat(np.arange(len(c)), c) for c in counts])
    best = np.argsort(-scores.reshape(-1), kind="stable")[: attrs["post_nms_topN"]]
    best = best[np.argsort(images[best], kind="stable")]
    return rois[best], np.bincount(images[best], minlength=len(counts[0])).astype(np.int32)
