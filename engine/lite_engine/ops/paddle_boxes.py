"""Boxes of detectors: decoding, anchors, priors. Names and semantics are Paddle's."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import Dim, TypeInfo
from ._core import REQUIRED, define_op
from ._samples import Draw, Sample
from .activation import _sigmoid

yolo_box = define_op(
    "yolo_box",
    inputs="x img_size",
    outputs="boxes scores",
    attrs={
        "anchors": REQUIRED, "class_num": REQUIRED, "conf_thresh": 0.01, "downsample_ratio": 32,
        "clip_bbox": 1, "scale_x_y": 1.0, "iou_aware": 0, "iou_aware_factor": 0.5,
    },
    source="Paddle yolo_box",
)  # fmt: skip


def _times(*dims: Dim) -> Dim:
    out = 1
    for d in dims:
        if not isinstance(d, int):
            return None
        out *= d
    return out


@yolo_box.infer
def _(x: TypeInfo, img_size: TypeInfo, **attrs: Any) -> list[TypeInfo]:
    n, c, h, w = x.dims
    count = len(attrs["anchors"]) // 2
    per_anchor = attrs["class_num"] + (6 if attrs["iou_aware"] else 5)
    if isinstance(c, int) and c != count * per_anchor:
        raise ShapeError(
            tr(
                "{anchors} anchors need {count} channels, found {c}",
                c=c,
                anchors=count,
                count=count * per_anchor,
            )
        )
    boxes = _times(count, h, w)
    return [x.with_shape((n, boxes, 4)), x.with_shape((n, boxes, attrs["class_num"]))]


@yolo_box.reference
def _(x: np.ndarray, img_size: np.ndarray, **attrs: Any) -> tuple[np.ndarray, np.ndarray]:
    """x (N, A·(5+C), H, W), img_size (N, 2: height, width) → boxes (N, A·H·W, 4), scores (…, C)

    Corners in pixels; boxes of a confidence below the threshold are zero.
    """
    n, _, h, w = x.shape
    anchors = np.asarray(attrs["anchors"], np.float32).reshape(-1, 2)
    count, classes = len(anchors), attrs["class_num"]
    iou = None
    if attrs["iou_aware"]:
        iou, x = _sigmoid(x[:, :count]), x[:, count:]
    x = x.reshape(n, count, 5 + classes, h, w)
    height, width = (img_size[:, i].astype(np.float32).reshape(n, 1, 1, 1) for i in (0, 1))
    scale = np.float32(attrs["scale_x_y"])
    bias = np.float32(-0.5) * (scale - 1)
    stride = attrs["downsample_ratio"]
    cx = (np.arange(w, dtype=np.float32) + _sigmoid(x[:, :, 0]) * scale + bias) * width / w
    cy = np.arange(h, dtype=np.float32)[:, None] + _sigmoid(x[:, :, 1]) * scale + bias
    cy = cy * height / h
    bw = np.exp(x[:, :, 2]) * anchors[:, 0].reshape(1, -1, 1, 1) * width / (stride * w)
    bh = np.exp(x[:, :, 3]) * anchors[:, 1].reshape(1, -1, 1, 1) * height / (stride * h)
    conf = _sigmoid(x[:, :, 4])
    if iou is not None:
        factor = attrs["iou_aware_factor"]
        conf = conf ** (1 - factor) * iou**factor
    boxes = np.stack([cx - bw / 2, cy - bh / 2, cx + bw / 2, cy + bh / 2], axis=-1)
    if attrs["clip_bbox"]:
        boxes[..., :2] = np.maximum(boxes[..., :2], 0)
        boxes[..., 2] = np.minimum(boxes[..., 2], width - 1)
        boxes[..., 3] = np.minimum(boxes[..., 3], height - 1)
    scores = conf[:, :, None] * _sigmoid(x[:, :, 5:])
    keep = conf >= attrs["conf_thresh"]
    boxes = np.where(keep[..., None], boxes, 0).reshape(n, -1, 4)
    scores = np.where(keep[:, :, None], scores, 0).transpose(0, 1, 3, 4, 2)
    return boxes.astype(x.dtype), scores.reshape(n, -1, classes).astype(x.dtype)


yolo_box.kernel("cpu", "f32_yolo_box")


prior_box = define_op(
    "prior_box",
    inputs="x image",
    outputs="boxes variances",
    attrs={
        "min_sizes": REQUIRED, "max_sizes": [], "aspect_ratios": [1.0],
        "variances": [0.1, 0.1, 0.2, 0.2], "flip": 0, "clip": 0, "step_w": 0.0, "step_h": 0.0,
        "offset": 0.5, "min_max_aspect_ratios_order": 0,
    },
    source="Paddle prior_box",
    of_shapes=True,
)  # fmt: skip


def _ratios(given: list[float], flip: bool) -> list[float]:
    """1 first, each ratio once, its inverse after it when flipped."""
    out = [1.0]
    for ratio in given:
        if any(abs(ratio - r) < 1e-6 for r in out):
            continue
        out.append(ratio)
        if flip:
            out.append(1.0 / ratio)
    return out


def _prior_sizes(attrs: dict[str, Any]) -> np.ndarray:
    """Half widths and heights (P, 2) of the priors of one cell."""
    sizes: list[tuple[float, float]] = []
    ratios = _ratios(attrs["aspect_ratios"], bool(attrs["flip"]))
    biggest = list(attrs["max_sizes"])
    for i, small in enumerate(attrs["min_sizes"]):
        square = [(float(np.sqrt(small * biggest[i])),) * 2] if biggest else []
        shaped = [(small * np.sqrt(r), small / np.sqrt(r)) for r in ratios]
        if attrs["min_max_aspect_ratios_order"]:
            sizes += [(small, small), *square]
            sizes += [s for s, r in zip(shaped, ratios) if abs(r - 1.0) >= 1e-6]
        else:
            sizes += [*shaped, *square]
    return np.asarray(sizes, np.float32) / 2


def _cells(feature: tuple[int, ...], picture: tuple[int, ...], attrs: dict[str, Any]) -> np.ndarray:
    """Centres of the cells (H, W, 2: x, y) in pixels."""
    (h, w), (ih, iw) = feature[-2:], picture[-2:]
    step_w, step_h = attrs["step_w"] or iw / w, attrs["step_h"] or ih / h
    xs = (np.arange(w, dtype=np.float32) + np.float32(attrs["offset"])) * np.float32(step_w)
    ys = (np.arange(h, dtype=np.float32) + np.float32(attrs["offset"])) * np.float32(step_h)
    return np.stack(np.meshgrid(xs, ys), axis=-1)


def _with_variances(boxes: np.ndarray, attrs: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    variances = np.broadcast_to(np.asarray(attrs["variances"], np.float32), boxes.shape)
    return boxes.astype(np.float32), np.ascontiguousarray(variances)


@prior_box.infer
def _(x: TypeInfo, image: TypeInfo, **attrs: Any) -> list[TypeInfo]:
    out = x.with_shape((x.dims[2], x.dims[3], len(_prior_sizes(attrs)), 4))
    return [out, out]


@prior_box.reference
def _(x: np.ndarray, image: np.ndarray, **attrs: Any) -> tuple[np.ndarray, np.ndarray]:
    """Feature map and image → boxes (H, W, P, 4) as fractions of the image, and variances"""
    centre = _cells(x.shape, image.shape, attrs)[:, :, None]
    half = _prior_sizes(attrs)
    size = np.asarray(image.shape[:1:-1], np.float32)
    boxes = np.concatenate([(centre - half) / size, (centre + half) / size], axis=-1)
    return _with_variances(np.clip(boxes, 0, 1) if attrs["clip"] else boxes, attrs)


density_prior_box = define_op(
    "density_prior_box",
    inputs="x image",
    outputs="boxes variances",
    attrs={
        "fixed_sizes": REQUIRED, "fixed_ratios": REQUIRED, "densities": REQUIRED,
        "variances": [0.1, 0.1, 0.2, 0.2], "clip": 0, "step_w": 0.0, "step_h": 0.0, "offset": 0.5,
        "flatten_to_2d": 0,
    },
    source="Paddle density_prior_box",
    of_shapes=True,
)  # fmt: skip


@density_prior_box.infer
def _(x: TypeInfo, image: TypeInfo, **attrs: Any) -> list[TypeInfo]:
    count = len(attrs["fixed_ratios"]) * sum(d * d for d in attrs["densities"])
    h, w = x.dims[2:]
    shape = (_times(h, w, count), 4) if attrs["flatten_to_2d"] else (h, w, count, 4)
    return [x.with_shape(shape), x.with_shape(shape)]


@density_prior_box.reference
def _(x: np.ndarray, image: np.ndarray, **attrs: Any) -> tuple[np.ndarray, np.ndarray]:
    """density² shifted copies of each box in a cell, cut at the image's border"""
    (h, w), (ih, iw) = x.shape[-2:], image.shape[-2:]
    step = int(((attrs["step_w"] or iw / w) + (attrs["step_h"] or ih / h)) * 0.5)
    offsets, halves = [], []
    for size, density in zip(attrs["fixed_sizes"], attrs["densities"]):
        shift = step // density
        for ratio in attrs["fixed_ratios"]:
            half = (size * np.sqrt(ratio) / 2, size / np.sqrt(ratio) / 2)
            for row in range(density):
                for col in range(density):
                    offsets.append([-step / 2 + shift / 2 + k * shift for k in (col, row)])
                    halves.append(half)
    centre = _cells(x.shape, image.shape, attrs)[:, :, None] + np.asarray(offsets, np.float32)
    reach, whole = np.asarray(halves, np.float32), np.asarray([iw, ih], np.float32)
    low, high = (centre - reach) / whole, (centre + reach) / whole
    boxes = np.concatenate([np.maximum(low, 0), np.minimum(high, 1)], axis=-1)
    boxes = np.clip(boxes, 0, 1) if attrs["clip"] else boxes
    return _with_variances(boxes.reshape(-1, 4) if attrs["flatten_to_2d"] else boxes, attrs)


anchor_generator = define_op(
    "anchor_generator",
    inputs="x",
    outputs="anchors variances",
    attrs={
        "anchor_sizes": REQUIRED, "aspect_ratios": REQUIRED, "stride": REQUIRED,
        "variances": [0.1, 0.1, 0.2, 0.2], "offset": 0.5,
    },
    source="Paddle anchor_generator",
    of_shapes=True,
)  # fmt: skip


@anchor_generator.infer
def _(x: TypeInfo, **attrs: Any) -> list[TypeInfo]:
    count = len(attrs["anchor_sizes"]) * len(attrs["aspect_ratios"])
    out = x.with_shape((x.dims[2], x.dims[3], count, 4))
    return [out, out]


@anchor_generator.reference
def _(x: np.ndarray, **attrs: Any) -> tuple[np.ndarray, np.ndarray]:
    """Boxes (H, W, ratios·sizes, 4) in pixels around the cells' centres"""
    h, w = x.shape[-2:]
    sw, sh = attrs["stride"]
    half = []
    for ratio in attrs["aspect_ratios"]:
        base_w = np.round(np.sqrt(sw * sh / ratio))
        base_h = np.round(base_w * ratio)
        for size in attrs["anchor_sizes"]:
            half.append([0.5 * (size / sw * base_w - 1), 0.5 * (size / sh * base_h - 1)])
    xs = np.arange(w) * sw + attrs["offset"] * (sw - 1)
    ys = np.arange(h) * sh + attrs["offset"] * (sh - 1)
    centre = np.stack(np.meshgrid(xs, ys), axis=-1)[:, :, None]
    boxes = np.concatenate([centre - np.asarray(half), centre + np.asarray(half)], axis=-1)
    return _with_variances(boxes, attrs)


@yolo_box.samples
def _(draw: Draw) -> Iterator[Sample]:
    for aware, dtype in itertools.product((0, 1), (np.int32, np.float32)):
        for images, anchors, classes, h, w, clip, scale in (
            (1, [10, 13, 16, 30, 33, 23], 3, 4, 5, 1, 1.0), (2, [7, 9], 1, 3, 3, 0, 1.05),
        ):  # fmt: skip
            attrs = {
                "anchors": anchors, "class_num": classes, "conf_thresh": 0.4, "clip_bbox": clip,
                "downsample_ratio": 8, "scale_x_y": scale, "iou_aware": aware,
                "iou_aware_factor": 0.4,
            }  # fmt: skip
            x = draw.f32(images, len(anchors) // 2 * (classes + 5 + aware), h, w)
            size = np.array([[50, 40], [20, 33]][:images], dtype)
            yield Sample([x, size], attrs, outputs=2, constant=())
