"""CropAndResize of TensorFlow's detection models."""

from __future__ import annotations

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import Dim, TypeInfo
from ._core import define_op
from ._helpers import known_ints
from ._records import Cost

crop_and_resize = define_op(
    "CropAndResize",
    inputs="image boxes box_index size",
    attrs={"method": "bilinear", "extrapolation_value": 0.0},
    attr_inputs=("size",),
    source="TensorFlow CropAndResize",
)


@crop_and_resize.infer
def _(
    image: TypeInfo,
    boxes: TypeInfo,
    index: TypeInfo,
    size: TypeInfo,
    *,
    method: str,
    extrapolation_value: float,
) -> TypeInfo:
    if image.rank != 4 or boxes.rank != 2:
        raise ShapeError(tr("expected image (N,H,W,C) and boxes (B,4)"))
    known = known_ints(size)
    wanted: list[Dim] = [None, None] if known is None else list(known)
    return image.with_shape((boxes.dims[0], *wanted, image.dims[3]))


@crop_and_resize.cost
def _(image: TypeInfo, boxes: TypeInfo, index: TypeInfo, size: TypeInfo, **_: object) -> Cost:
    return Cost(flops=image.size)


@crop_and_resize.reference
def _(
    image: np.ndarray,
    boxes: np.ndarray,
    index: np.ndarray,
    size: np.ndarray,
    *,
    method: str,
    extrapolation_value: float,
) -> np.ndarray:
    """image (N,H,W,C), boxes (B,4) y0,x0,y1,x1 in [0,1], index (B,), size (2,) → (B,h,w,C).

    Row i of a crop lies at y0·(H−1) + i·(y1−y0)·(H−1)/(h−1), the middle when h is 1.
    """
    height, width = (int(v) for v in size)
    out = np.full((len(boxes), height, width, image.shape[3]), extrapolation_value, np.float32)
    for b, (y0, x0, y1, x1) in enumerate(boxes.astype(np.float64)):
        ys = _places(y0, y1, image.shape[1], height)
        xs = _places(x0, x1, image.shape[2], width)
        inside_y = np.flatnonzero((ys >= 0) & (ys <= image.shape[1] - 1))
        inside_x = np.flatnonzero((xs >= 0) & (xs <= image.shape[2] - 1))
        picture = image[int(index[b])].astype(np.float32)
        picked = _sample(picture, ys[inside_y], xs[inside_x], method)
        out[b][np.ix_(inside_y, inside_x)] = picked
    return out


def _places(start: float, stop: float, size: int, count: int) -> np.ndarray:
    if count == 1:
        return np.array([0.5 * (start + stop) * (size - 1)])
    return start * (size - 1) + np.arange(count) * (stop - start) * (size - 1) / (count - 1)


def _sample(picture: np.ndarray, ys: np.ndarray, xs: np.ndarray, method: str) -> np.ndarray:
    """picture (H,W,C) at all pairs of ys and xs."""
    if method == "nearest":
        at_y, at_x = np.floor(ys + 0.5).astype(int), np.floor(xs + 0.5).astype(int)
        return picture[np.ix_(at_y, at_x)]
    top, left = np.floor(ys).astype(int), np.floor(xs).astype(int)
    bottom, right = np.ceil(ys).astype(int), np.ceil(xs).astype(int)
    down = (ys - top)[:, None, None].astype(np.float32)
    across = (xs - left)[None, :, None].astype(np.float32)
    upper = picture[np.ix_(top, left)] * (1 - across) + picture[np.ix_(top, right)] * across
    lower = picture[np.ix_(bottom, left)] * (1 - across) + picture[np.ix_(bottom, right)] * across
    return upper * (1 - down) + lower * down
