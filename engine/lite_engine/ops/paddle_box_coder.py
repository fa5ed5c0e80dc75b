"""Box arithmetic of detectors: coding against priors, clipping, overlap. All of it is Paddle's."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import TypeInfo
from ._conditions import attr
from ._core import define_op
from ._helpers import same_type
from ._samples import Draw, Sample

box_coder = define_op(
    "box_coder",
    inputs="prior prior_variance? target",
    attrs={"code_type": "encode_center_size", "box_normalized": 1, "axis": 0, "variance": []},
    source="Paddle box_coder",
)


@box_coder.infer
def _(prior: TypeInfo, prior_variance: TypeInfo | None, target: TypeInfo, **attrs: Any) -> TypeInfo:
    if attrs["code_type"] == "encode_center_size":
        return target.with_shape((target.dims[0], prior.dims[0], 4))
    if attrs["code_type"] != "decode_center_size":
        raise ShapeError(tr("code_type {attrs!r} is not known", attrs=attrs["code_type"]))
    return same_type(target)


def _centres(boxes: np.ndarray, extra: float) -> tuple[np.ndarray, np.ndarray]:
    """Corners (…, 4) → centres and sizes (…, 2)."""
    size = boxes[..., 2:] - boxes[..., :2] + extra
    return boxes[..., :2] + size / 2, size


@box_coder.reference
def _(
    prior: np.ndarray, prior_variance: np.ndarray | None, target: np.ndarray, **attrs: Any
) -> np.ndarray:
    """decode: centre = v·t·size + centre of the prior, size = e^(v·t)·size; encode is the inverse

    prior (M, 4); target (N, M, 4) to decode (priors along `axis`), (N, 4) to encode against all.
    """
    extra = 0.0 if attrs["box_normalized"] else 1.0
    centre, size = _centres(prior, extra)
    scale = prior_variance
    if scale is None:
        scale = np.asarray(attrs["variance"] or [1.0] * 4, np.float32)
    if attrs["code_type"] == "encode_center_size":
        middle = (target[:, None, 2:] + target[:, None, :2]) / 2
        extent = target[:, None, 2:] - target[:, None, :2] + extra
        out = np.concatenate([(middle - centre) / size, np.log(np.abs(extent / size))], axis=-1)
        return np.asarray(out / scale, target.dtype)
    across = (slice(None), None) if attrs["axis"] == 1 else (None,)
    centre, size = centre[across], size[across]
    t = target * (scale if scale.ndim == 1 else scale[across])
    middle, extent = t[..., :2] * size + centre, np.exp(t[..., 2:]) * size
    out = np.concatenate([middle - extent / 2, middle + extent / 2 - extra], axis=-1)
    return np.asarray(out, target.dtype)


box_coder.kernel("cpu", "f32_box_coder", when=attr("code_type", "decode_center_size"))


box_clip = define_op("box_clip", inputs="boxes im_info", source="Paddle box_clip")
box_clip.infer(same_type)


@box_clip.reference
def _(boxes: np.ndarray, im_info: np.ndarray) -> np.ndarray:
    """Boxes (…, 4) cut at an image; im_info (1, 3): height, width, scale"""
    height, width, scale = (float(v) for v in im_info.reshape(-1)[:3])
    limit = np.asarray([np.round(width / scale) - 1, np.round(height / scale) - 1] * 2)
    return np.clip(boxes, 0, limit).astype(boxes.dtype)


iou_similarity = define_op(
    "iou_similarity", inputs="x y", attrs={"box_normalized": 1}, source="Paddle iou_similarity"
)


@iou_similarity.infer
def _(x: TypeInfo, y: TypeInfo, *, box_normalized: int) -> TypeInfo:
    return x.with_shape((x.dims[0], y.dims[0]))


@iou_similarity.reference
def _(x: np.ndarray, y: np.ndarray, *, box_normalized: int) -> np.ndarray:
    """Intersection over union of boxes (N, 4) and (M, 4) → (N, M)"""
    return iou(x[:, None], y[None], bool(box_normalized)).astype(x.dtype)


def iou(a: np.ndarray, b: np.ndarray, normalized: bool) -> np.ndarray:
    """Intersection over union of broadcast boxes (…, 4); pixel boxes include their last pixel."""
    extra = 0.0 if normalized else 1.0
    low, high = np.maximum(a[..., :2], b[..., :2]), np.minimum(a[..., 2:], b[..., 2:])
    inner = np.prod(np.maximum(high - low + extra, 0), axis=-1)
    inner = np.where((high < low).any(axis=-1), 0, inner)

    def area(box: np.ndarray) -> np.ndarray:
        size = box[..., 2:] - box[..., :2]
        return np.where((size < 0).any(axis=-1), 0, np.prod(size + extra, axis=-1))

    union = area(a) + area(b) - inner
    return np.where(union > 0, inner / np.where(union > 0, union, 1), 0)


polygon_box_transform = define_op(
    "polygon_box_transform", inputs="x", source="Paddle polygon_box_transform"
)
polygon_box_transform.infer(same_type)


@polygon_box_transform.reference
def _(x: np.ndarray) -> np.ndarray:
    """Offsets (N, G, H, W) on a map of a quarter of the size → coordinates

    4·column (even channels) or 4·row (odd ones) minus the offset.
    """
    h, w = x.shape[-2:]
    cols = np.broadcast_to(np.arange(w) * 4, (h, w))
    rows = np.broadcast_to((np.arange(h) * 4)[:, None], (h, w))
    grid = np.stack([cols if c % 2 == 0 else rows for c in range(x.shape[1])])
    return (grid - x).astype(x.dtype)


@box_coder.samples
def _(draw: Draw) -> Iterator[Sample]:
    low = draw.rng.integers(0, 6, (7, 2))
    prior = np.concatenate([low, low + 3], 1).astype(np.float32)
    for normalized, (rows, columns, axis) in itertools.product((0, 1), ((3, 7, 0), (7, 2, 1))):
        for variance, given in (
            (np.full((7, 4), 0.2, np.float32), []), (None, [0.1, 0.1, 0.2, 0.2]), (None, []),
            (np.full(4, 0.3, np.float32), []),
        ):  # fmt: skip
            attrs = {
                "code_type": "decode_center_size", "box_normalized": normalized, "axis": axis,
                "variance": given,
            }  # fmt: skip
            yield Sample([prior, variance, draw.f32(rows, columns, 4)], attrs, constant=(0, 1))
