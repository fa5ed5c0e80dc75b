"""PasteMasks: the masks of a detector, each stretched over its box in an image."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import TypeInfo
from ._conditions import of_type
from ._core import REQUIRED, define_op
from ._records import Cost
from ._samples import Draw, Sample

Array = np.ndarray

paste_masks = define_op(
    "PasteMasks",
    inputs="masks boxes",
    attrs={"height": REQUIRED, "width": REQUIRED},
    source="what torchvision's Mask R-CNN does in a loop",
)


@paste_masks.infer
def _(masks: TypeInfo, boxes: TypeInfo, *, height: int, width: int) -> TypeInfo:
    if masks.rank != 4 or boxes.rank != 2 or boxes.dims[1] not in (4, None):
        raise ShapeError(tr("masks must be (N,C,h,w) and boxes (N,4)"))
    return masks.with_shape((masks.dims[0], height, width))


def _side(low: int, high: int, size: int, cells: int) -> tuple[slice, Array, Array, Array]:
    """The pixels that one side of a box covers, each one's two cells and the second's weight."""
    length = max(high - low + 1, 1)
    pixels = np.arange(max(low, 0), min(high + 1, size))
    at = (np.float32(pixels - low) + np.float32(0.5)) * np.float32(cells / length)
    at = np.clip(at - np.float32(0.5), 0, cells - 1)
    first = np.asarray(at.astype(np.int64))
    where = slice(max(low, 0), max(low, 0) + len(pixels))
    weight = np.asarray(at - first.astype(np.float32))
    return where, first, np.minimum(first + 1, cells - 1), weight


@paste_masks.reference
def paste(masks: Array, boxes: Array, *, height: int, width: int) -> Array:
    """masks (N,C,h,w), of which the first channel counts, and boxes (N,4) of whole x1, y1, x2, y2
    → (N,height,width)"""
    y = np.zeros((len(masks), height, width), masks.dtype)
    for out, mask, box in zip(y, masks[:, 0], boxes.tolist()):
        rows, top, bottom, fall = _side(box[1], box[3], height, mask.shape[0])
        columns, left, right, part = _side(box[0], box[2], width, mask.shape[1])
        lines = mask[:, left] + (mask[:, right] - mask[:, left]) * part
        out[rows, columns] = lines[top] + (lines[bottom] - lines[top]) * fall[:, None]
    return y


@paste_masks.cost
def _(masks: TypeInfo, boxes: TypeInfo, *, height: int, width: int) -> Cost:
    return Cost(flops=8 * masks.with_shape((masks.dims[0], height, width)).size)


@paste_masks.samples
def _(draw: Draw) -> Iterator[Sample]:
    for height, width, cells in ((20, 30, 5), (7, 9, 16), (33, 12, 1)):
        low = draw.ints(-6, 28, 9, 2)
        boxes = np.concatenate([low, low + draw.ints(-2, 25, 9, 2)], 1)
        yield Sample([draw.f32(9, 1, cells, cells), boxes], {"height": height, "width": width})


paste_masks.kernel(
    "cpu", "f32_paste_masks", dtype="f32", when=of_type(1, dtype="i64"),
    why=tr("each line of the image"),
)  # fmt: skip
