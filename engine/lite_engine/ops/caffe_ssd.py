"""SSD operators of Caffe: PriorBox (anchors from shapes) and DetectionOutput (decode, suppress)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import DType, TypeInfo
from ._core import REQUIRED, define_op
from ._helpers import known_ints
from ._records import Cost
from ._samples import Draw, Sample
from .suppression import best_first, sample_anchors, sample_scores, suppress

prior_box = define_op(
    "PriorBox",
    inputs="map_shape image_shape",
    attrs={
        "min_sizes": REQUIRED,
        "max_sizes": [],
        "aspect_ratios": [],
        "flip": True,
        "clip": False,
        "variances": [0.1],
        "steps": [0.0, 0.0],
        "image": [0, 0],
        "offset": 0.5,
    },
    source="Caffe SSD PriorBoxLayer; the inputs are the shapes of its bottoms",
)


def _ratios(attrs: dict[str, Any]) -> list[float]:
    """1 first, then each ratio once, with its inverse when flipped."""
    out = [1.0]
    for ratio in attrs["aspect_ratios"]:
        if all(abs(ratio - known) >= 1e-6 for known in out):
            out += [ratio, 1 / ratio] if attrs["flip"] else [ratio]
    return out


def _per_cell(attrs: dict[str, Any]) -> int:
    return len(_ratios(attrs)) * len(attrs["min_sizes"]) + len(attrs["max_sizes"])


@prior_box.infer
def _(map_shape: TypeInfo, image_shape: TypeInfo, **attrs: Any) -> TypeInfo:
    dims = known_ints(map_shape)
    cells = None if dims is None or len(dims) != 4 else dims[2] * dims[3]
    return TypeInfo(DType.F32, (1, 2, None if cells is None else cells * _per_cell(attrs) * 4))


@prior_box.cost
def _(map_shape: TypeInfo, image_shape: TypeInfo, **attrs: Any) -> Cost:
    return Cost()


@prior_box.reference
def _(map_shape: np.ndarray, image_shape: np.ndarray, **attrs: Any) -> np.ndarray:
    """Shapes of a map and of the image, both (4,) → (1,2,H·W·P·4): corners x0,y0,x1,y1 relative to
    the
    image, then their variances."""
    height, width = (int(v) for v in map_shape[2:])
    image_h, image_w = (given or int(own) for given, own in zip(attrs["image"], image_shape[2:]))
    step_h, step_w = attrs["steps"]
    step_h, step_w = step_h or image_h / height, step_w or image_w / width
    sizes: list[tuple[float, float]] = []  # (w, h) of the priors of a cell
    for i, small in enumerate(attrs["min_sizes"]):
        sizes.append((small, small))
        if attrs["max_sizes"]:
            sizes.append((np.sqrt(small * attrs["max_sizes"][i]),) * 2)
        sizes += [(small * np.sqrt(r), small / np.sqrt(r)) for r in _ratios(attrs)[1:]]
    half = np.array(sizes, np.float32) / 2
    cy, cx = np.meshgrid(
        (np.arange(height) + attrs["offset"]) * step_h,
        (np.arange(width) + attrs["offset"]) * step_w,
        indexing="ij",
    )
    centre = np.stack([cx, cy], -1)[:, :, None].astype(np.float32)  # (H,W,1,2)
    boxes = np.concatenate([centre - half, centre + half], -1)
    boxes /= np.array([image_w, image_h] * 2, np.float32)
    if attrs["clip"]:
        boxes = np.clip(boxes, 0, 1)
    variances = np.asarray(attrs["variances"], np.float32)
    variances = np.broadcast_to(variances, boxes.shape)
    return np.stack([boxes.ravel(), variances.ravel()])[None].astype(np.float32)


detection_output = define_op(
    "DetectionOutput",
    inputs="locations confidences priors",
    attrs={
        "num_classes": REQUIRED,
        "share_location": True,
        "background_label": 0,
        "code_type": 1,
        "variance_encoded": False,
        "nms_threshold": 0.3,
        "nms_top_k": -1,
        "keep_top_k": -1,
        "confidence_threshold": -3e38,
    },
    source="Caffe SSD DetectionOutputLayer",
    postprocess="choice",
)


@detection_output.infer
def _(locations: TypeInfo, confidences: TypeInfo, priors: TypeInfo, **attrs: Any) -> TypeInfo:
    if priors.rank != 3:
        raise ShapeError(tr("priors must be (1,2,P·4)"))
    batch, keep = locations.dims[0], attrs["keep_top_k"]
    rows = batch * keep if isinstance(batch, int) and keep > -1 else None
    return TypeInfo(locations.dtype, (1, 1, rows, 7))


@detection_output.cost
def _(locations: TypeInfo, confidences: TypeInfo, priors: TypeInfo, **attrs: Any) -> Cost:
    return Cost(flops=8 * locations.size + confidences.size)


@detection_output.reference
def _(
    locations: np.ndarray, confidences: np.ndarray, priors: np.ndarray, **attrs: Any
) -> np.ndarray:
    """locations (N,P·L·4), confidences (N,P·C), priors (1,2,P·4) → (1,1,D,7): image, label, score,
    x0, y0, x1, y1, by label and then by falling score. L is 1 when all classes share the locations.

    With keep_top_k D is N·keep_top_k and rows of zeros follow what is found (OpenCV does so, and
    the
    shape is known); without it D is what is found, or one row of −1 per image."""
    batch, classes = confidences.shape[0], attrs["num_classes"]
    count = priors.shape[2] // 4
    anchors, variances = priors[0].reshape(2, count, 4)
    offsets = locations.reshape(batch, count, 1 if attrs["share_location"] else classes, 4)
    scores = confidences.reshape(batch, count, classes)
    rows: list[list[float]] = []
    for image in range(batch):
        rows += _detect(image, offsets[image], scores[image], anchors, variances, attrs)
    if attrs["keep_top_k"] > -1:
        rows += [[0.0] * 7] * (batch * attrs["keep_top_k"] - len(rows))
    elif not rows:
        rows = [[float(image)] + [-1.0] * 6 for image in range(batch)]
    return np.array(rows, np.float32).reshape(1, 1, -1, 7)


detection_output.kernel(
    "cpu",
    "f32_detection_output",
    when=lambda node, types: (
        node.attrs.get("keep_top_k", -1) > -1
        or tr("without keep_top_k, the number of rows depends on data")
    ),
)


def _detect(
    image: int,
    offsets: np.ndarray,
    scores: np.ndarray,
    anchors: np.ndarray,
    variances: np.ndarray,
    attrs: dict[str, Any],
) -> list[list[float]]:
    """Rows of one image."""
    found: list[tuple[float, int, np.ndarray]] = []
    corners = np.empty(0)
    for label in range(attrs["num_classes"]):
        if label == attrs["background_label"]:
            continue
        if label <= 1 or not attrs["share_location"] or not corners.size:
            at = 0 if attrs["share_location"] else label
            corners = decode(offsets[:, at], anchors, variances, attrs)
        column = scores[:, label]
        order = best_first(column, column > attrs["confidence_threshold"])
        if attrs["nms_top_k"] > -1:
            order = order[: attrs["nms_top_k"]]
        kept = suppress(corners, order, attrs["nms_threshold"], len(order))
        found += [(float(column[k]), label, corners[k]) for k in kept]
    if -1 < attrs["keep_top_k"] < len(found):
        found = sorted(found, key=lambda f: -f[0])[: attrs["keep_top_k"]]
        found.sort(key=lambda f: f[1])
    return [[float(image), float(label), score, *map(float, box)] for score, label, box in found]


def decode(
    offsets: np.ndarray, anchors: np.ndarray, variances: np.ndarray, attrs: dict[str, Any]
) -> np.ndarray:
    """Offsets (P,4) against corner anchors (P,4) → corners (P,4); code 1 corner, 2 centre-size,
    3 corner-size."""
    moves = offsets if attrs["variance_encoded"] else offsets * variances
    size = anchors[:, 2:] - anchors[:, :2]
    if attrs["code_type"] == 1:
        return anchors + moves
    if attrs["code_type"] == 3:
        return anchors + moves * np.concatenate([size, size], 1)
    centre = moves[:, :2] * size + (anchors[:, :2] + anchors[:, 2:]) / 2
    half = np.exp(moves[:, 2:]) * size / 2
    return np.concatenate([centre - half, centre + half], 1)


@detection_output.samples
def _(draw: Draw) -> Iterator[Sample]:
    for code, shared in itertools.product((1, 2, 3), (True, False)):
        for images, boxes, classes, keep, most, encoded in (
            (1, 30, 2, 20, -1, False), (2, 60, 4, 25, 9, True), (1, 5, 3, 200, 400, False),
            (1, 8, 2, 0, -1, False),
        ):  # fmt: skip
            attrs = {
                "num_classes": classes, "share_location": shared, "background_label": 0,
                "code_type": code, "variance_encoded": encoded, "nms_threshold": 0.4,
                "nms_top_k": most, "keep_top_k": keep, "confidence_threshold": 0.25,
            }  # fmt: skip
            anchors = sample_anchors(draw, boxes)
            corners = np.concatenate([anchors[:, :2], anchors[:, :2] + anchors[:, 2:]], 1)
            priors = np.stack([corners.ravel(), np.full(4 * boxes, 0.15, np.float32)])[None]
            sets = 1 if shared else classes
            scores = sample_scores(draw, images, boxes * classes)
            yield Sample([draw.f32(images, boxes * sets * 4), scores, priors], attrs, constant=(2,))
