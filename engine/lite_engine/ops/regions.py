"""Regions of an image, each in a fixed number of cells: RoiAlign, MaxRoiPool."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from ._conditions import of_type
from ._core import REQUIRED, define_op
from ._helpers import product, wide
from ._records import Cost
from ._samples import Draw, Sample

Array = np.ndarray

roi_align = define_op(
    "RoiAlign",
    inputs="x rois batch_indices",
    attrs={
        "coordinate_transformation_mode": "half_pixel",
        "mode": "avg",
        "output_height": 1,
        "output_width": 1,
        "sampling_ratio": 0,
        "spatial_scale": 1.0,
    },
    choices={"mode": ("avg", "max")},
    source="ONNX RoiAlign-22; an image that is not there gives zeros",
)
roi_align.infer(
    lambda x, rois, batch, *, output_height, output_width, **_: x.with_shape(
        (rois.dims[0], x.dims[1], output_height, output_width)
    )
)


@roi_align.reference
def _(
    x: Array,
    rois: Array,
    batch: Array,
    *,
    coordinate_transformation_mode: str,
    mode: str,
    output_height: int,
    output_width: int,
    sampling_ratio: int,
    spatial_scale: float,
) -> Array:
    """Mean or maximum of bilinear samples on an even grid in each cell of regions (x1,y1,x2,y2)"""
    half = 0.5 if coordinate_transformation_mode == "half_pixel" else 0.0
    y = np.zeros((len(rois), x.shape[1], output_height, output_width), wide(x).dtype)
    for i, (roi, b) in enumerate(zip(rois, batch)):
        if not 0 <= b < len(x):
            continue
        begin, size, counts = [], [], []
        for low, high, cells in ((roi[1], roi[3], output_height), (roi[0], roi[2], output_width)):
            start, end = low * spatial_scale - half, high * spatial_scale - half
            length = end - start if half else max(end - start, 1.0)
            begin.append(start)
            size.append(length / cells)
            counts.append(sampling_ratio or math.ceil(length / cells))
        points = [
            begin[a] + (np.arange(n * c) + 0.5) * size[a] / c
            for a, (n, c) in enumerate(zip((output_height, output_width), counts))
        ]
        y[i] = _region(wide(x[int(b)]), points, counts, (output_height, output_width), mode)
    return y.astype(x.dtype)


roi_align.kernel("cpu", "f32_roi_align", when=of_type(2, dtype="i64"))
roi_align.cost(
    lambda x, rois, *_, output_height, output_width, sampling_ratio, **__: Cost(
        flops=8
        * product((rois.dims[0], x.dims[1], output_height, output_width))
        * (sampling_ratio or 2) ** 2
    )
)


@roi_align.samples
def _(draw: Draw) -> Iterator[Sample]:
    kinds = itertools.product(("half_pixel", "output_half_pixel"), ("avg", "max"), (0, 1, 2, 9))
    for transform, mode, ratio in kinds:
        low = draw.rng.uniform(-4, 20, (9, 2))
        rois = np.concatenate([low, low + draw.rng.uniform(0.5, 18, low.shape)], 1)
        images = np.array([0, 1, 1, 0, 2, -1, 1, 0, 2**31 - 1])
        yield Sample(
            [draw(2, 5, 11, 13), rois.astype(np.float32), images],
            {"coordinate_transformation_mode": transform, "mode": mode, "sampling_ratio": ratio,
             "output_height": 3, "output_width": 4, "spatial_scale": 0.5},
            constant=(),
        )  # fmt: skip


def _region(
    image: Array, points: list[Array], counts: list[int], cells: tuple[int, int], mode: str
) -> Array:
    """Samples (C, cells·counts) reduced to cells; points more than 1 outside count as 0."""
    weights, places, valid = [], [], []
    for p, size in zip(points, image.shape[1:]):
        valid.append((p >= -1) & (p <= size))
        inner = np.maximum(p, 0)
        low = np.minimum(np.floor(inner).astype(int), size - 1)
        high = np.minimum(low + 1, size - 1)
        part = np.where(low >= size - 1, 0.0, inner - low)
        weights.append((1 - part, part))
        places.append((low, high))
    shape = (image.shape[0], cells[0], counts[0], cells[1], counts[1])
    inside = valid[0][:, None] & valid[1][None, :]
    parts = [
        image[:, places[0][i][:, None], places[1][j][None, :]]
        * weights[0][i][:, None]
        * weights[1][j][None, :]
        * inside
        for i in (0, 1)
        for j in (0, 1)
    ]
    if mode == "max":  # the standard takes the largest weighted corner, not the largest sample
        return np.maximum.reduce(parts).reshape(shape).max((2, 4))
    return sum(parts).reshape(shape).mean((2, 4))


max_roi_pool = define_op(
    "MaxRoiPool",
    inputs="x rois",
    attrs={"pooled_shape": REQUIRED, "spatial_scale": 1.0},
    source="ONNX MaxRoiPool-22",
)
max_roi_pool.infer(
    lambda x, rois, *, pooled_shape, **_: x.with_shape((rois.dims[0], x.dims[1], *pooled_shape))
)


@max_roi_pool.reference
def _(x: Array, rois: Array, *, pooled_shape: list[int], spatial_scale: float) -> Array:
    """Maximum of each cell of each region (batch,x1,y1,x2,y2); an empty cell gives 0"""
    y = np.zeros((len(rois), x.shape[1], *pooled_shape), x.dtype)
    for i, roi in enumerate(rois):
        image = x[int(roi[0])]
        low_x, low_y, high_x, high_y = (int(np.floor(v * spatial_scale + 0.5)) for v in roi[1:])
        spans = []
        for low, high, cells, size in (
            (low_y, high_y, pooled_shape[0], x.shape[2]),
            (low_x, high_x, pooled_shape[1], x.shape[3]),
        ):
            step = max(high - low + 1, 1) / cells
            edges = [
                (math.floor(c * step) + low, math.ceil((c + 1) * step) + low) for c in range(cells)
            ]
            spans.append([(min(max(a, 0), size), min(max(b, 0), size)) for a, b in edges])
        for r, (top, bottom) in enumerate(spans[0]):
            for c, (left, right) in enumerate(spans[1]):
                if bottom > top and right > left:
                    y[i, :, r, c] = image[:, top:bottom, left:right].max((1, 2))
    return y
