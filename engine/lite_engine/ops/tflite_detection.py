"""TFLite_Detection_PostProcess: SSD box decoding and non-maximum suppression in one operator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import TypeInfo
from ._core import REQUIRED, define_op
from ._records import Cost
from ._samples import Draw, Sample
from .suppression import best_first, sample_anchors, sample_scores, suppress

detection = define_op(
    "TFLite_Detection_PostProcess",
    inputs="boxes scores anchors",
    outputs="detection_boxes classes detection_scores count",
    attrs={
        "max_detections": REQUIRED,
        "max_classes_per_detection": 1,
        "detections_per_class": 100,
        "num_classes": REQUIRED,
        "score_threshold": REQUIRED,
        "iou_threshold": REQUIRED,
        "use_regular_nms": False,
        "scales": [10.0, 10.0, 5.0, 5.0],
    },
    source="TensorFlow Lite, kernels/detection_postprocess (behavior)",
    postprocess="choice",
)


@detection.infer
def _(boxes: TypeInfo, scores: TypeInfo, anchors: TypeInfo, **attrs: Any) -> list[TypeInfo]:
    if boxes.rank != 3 or scores.rank != 3 or anchors.rank != 2 or boxes.dims[0] not in (1, None):
        raise ShapeError(tr("expected boxes (1,A,4), scores (1,A,C) and anchors (A,4)"))
    slots = attrs["max_detections"]
    if not attrs["use_regular_nms"]:
        slots *= attrs["max_classes_per_detection"]
    shapes = ((1, slots, 4), (1, slots), (1, slots), (1,))
    return [boxes.with_shape(s) for s in shapes]


@detection.cost
def _(boxes: TypeInfo, scores: TypeInfo, anchors: TypeInfo, **attrs: Any) -> Cost:
    return Cost(flops=8 * boxes.size + scores.size)


@detection.reference
def _(
    boxes: np.ndarray, scores: np.ndarray, anchors: np.ndarray, **attrs: Any
) -> tuple[np.ndarray, ...]:
    """boxes (1,A,4) as y,x,h,w against anchors (A,4) y,x,h,w; scores (1,A,C), a first column of
    background when C is num_classes + 1. → boxes (1,D,4) y0,x0,y1,x1, classes (1,D), scores (1,D),
    count (1,); slots that are not used hold zeros."""
    corners = decode_boxes(boxes[0], anchors, attrs["scales"])
    classes = scores[0][:, scores.shape[2] - attrs["num_classes"] :]
    pick = _regular if attrs["use_regular_nms"] else _fast
    found = pick(corners, classes, attrs)
    slots = attrs["max_detections"]
    if not attrs["use_regular_nms"]:
        slots *= attrs["max_classes_per_detection"]
    out_boxes = np.zeros((1, slots, 4), np.float32)
    out_classes, out_scores = np.zeros((2, 1, slots), np.float32)
    for i, (score, anchor, label) in enumerate(found[:slots]):
        out_boxes[0, i], out_classes[0, i], out_scores[0, i] = corners[anchor], label, score
    return out_boxes, out_classes, out_scores, np.array([min(len(found), slots)], np.float32)


detection.kernel("cpu", "f32_detection_postprocess")


def decode_boxes(boxes: np.ndarray, anchors: np.ndarray, scales: list[float]) -> np.ndarray:
    """Offsets (A,4) against centre-size anchors (A,4) → corners (A,4) y0,x0,y1,x1."""
    centre = boxes[:, :2] / np.asarray(scales[:2], np.float32) * anchors[:, 2:] + anchors[:, :2]
    half = 0.5 * np.exp(boxes[:, 2:4] / np.asarray(scales[2:], np.float32)) * anchors[:, 2:]
    return np.concatenate([centre - half, centre + half], 1).astype(np.float32)


def _thinned(corners: np.ndarray, scores: np.ndarray, limit: int, attrs: Any) -> list[int]:
    """Boxes that reach the threshold and overlap no better one, by falling score."""
    order = best_first(scores, scores >= attrs["score_threshold"])
    return suppress(corners, order, attrs["iou_threshold"], limit)


def _fast(corners: np.ndarray, scores: np.ndarray, attrs: Any) -> list[tuple[float, int, int]]:
    """Suppression on each anchor's best score; then its best classes."""
    kept = _thinned(corners, scores.max(axis=1), attrs["max_detections"], attrs)
    found = []
    for anchor in kept:
        best = np.argsort(-scores[anchor], kind="stable")[: attrs["max_classes_per_detection"]]
        found += [(float(scores[anchor, label]), anchor, int(label)) for label in best]
    return found


def _regular(corners: np.ndarray, scores: np.ndarray, attrs: Any) -> list[tuple[float, int, int]]:
    """Suppression in each class; then the best of all."""
    found = [
        (float(scores[anchor, label]), anchor, label)
        for label in range(scores.shape[1])
        for anchor in _thinned(corners, scores[:, label], attrs["detections_per_class"], attrs)
    ]
    found.sort(key=lambda f: -f[0])
    return found[: attrs["max_detections"]]


@detection.samples
def _(draw: Draw) -> Iterator[Sample]:
    for regular in (False, True):
        for boxes, columns, most in ((1, 1, 3), (40, 4, 10), (150, 7, 100)):
            for per_box, per_class, least, iou in (
                (1, 100, 0.875, 0.6), (3, 2, -1.0, 0.3), (2, 4, 2.0, 0.5),
            ):  # fmt: skip
                attrs = {
                    "max_detections": most, "max_classes_per_detection": per_box,
                    "detections_per_class": per_class, "num_classes": max(columns - 1, 1),
                    "score_threshold": least, "iou_threshold": iou, "use_regular_nms": regular,
                }  # fmt: skip
                scores = sample_scores(draw, 1, boxes, columns)
                inputs = [draw.f32(1, boxes, 4), scores, sample_anchors(draw, boxes)]
                yield Sample(inputs, attrs, outputs=4, constant=(2,))
