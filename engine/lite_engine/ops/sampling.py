"""Images at computed positions: GridSample, AffineGrid, Col2Im, DeformConv."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import TypeInfo
from ._conditions import all_of, attr, of_type, rank
from ._core import define_op
from ._helpers import known_ints, product, unknown_dims, wide
from ._records import Cost
from ._samples import Draw, Sample
from .resize import _kernel

Array = np.ndarray


def sample(x: Array, at: list[Array], mode: str, padding: str) -> Array:
    """x (C,*S) at real positions, one array (…) per spatial axis → (C,…).

    mode nearest, linear or cubic; padding zeros, border or reflection (applied by the caller).
    """
    if len(at) != x.ndim - 1:
        raise ShapeError(
            tr(
                "expected a position on each of {ndim} spatial axes, found {positions}",
                positions=len(at),
                ndim=x.ndim - 1,
            )
        )
    taps: list[list[tuple[Array, Array]]] = []
    if mode == "nearest":
        taps = [[(np.rint(p).astype(int), np.ones(()))] for p in at]
    else:
        for p in at:
            low = np.floor(p).astype(int)
            reach = range(2) if mode == "linear" else range(-1, 3)
            taps.append([(low + r, _kernel(p - (low + r), mode, -0.75)) for r in reach])
    y = np.zeros(())
    for corner in itertools.product(*taps):
        inside, weight, where = np.array(True), np.ones(()), []
        for (index, w), size in zip(corner, x.shape[1:]):
            inside = inside & (index >= 0) & (index < size)
            where.append(np.clip(index, 0, size - 1))
            weight = weight * w
        part = x[(slice(None), *where)]
        scale = weight * inside if padding == "zeros" else weight
        y = y + part * scale
    return y


def _reflect(p: Array, low: float, high: float) -> Array:
    """Positions mirrored back into [low, high]."""
    span = high - low
    if span <= 0:
        return np.zeros_like(p)
    folded = np.mod(p - low, 2 * span)
    return low + np.where(folded > span, 2 * span - folded, folded)


grid_sample = define_op(
    "GridSample",
    inputs="x grid",
    attrs={"align_corners": 0, "mode": "linear", "padding_mode": "zeros"},
    source="ONNX GridSample-22",
)
grid_sample.infer(lambda x, grid, **_: x.with_shape((*x.dims[:2], *grid.dims[1:-1])))


@grid_sample.reference
def _(x: Array, grid: Array, *, align_corners: int, mode: str, padding_mode: str) -> Array:
    """x (N,C,*S), grid (N,*O,n) of positions in [−1, 1], innermost axis first → (N,C,*O)"""
    kind = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    if kind not in ("nearest", "linear", "cubic") or padding_mode not in (
        "zeros",
        "border",
        "reflection",
    ):
        raise ShapeError(
            tr(
                "the mode {mode!r} or padding mode {padding_mode!r} is not known",
                mode=mode,
                padding_mode=padding_mode,
            )
        )
    out = []
    for image, positions in zip(wide(x), wide(grid)):
        at = []
        for i, size in enumerate(image.shape[1:]):
            g = positions[..., image.ndim - 2 - i]
            p = (g + 1) / 2 * (size - 1) if align_corners else ((g + 1) * size - 1) / 2
            if padding_mode == "reflection" and kind != "cubic":
                low, high = (0, size - 1) if align_corners else (-0.5, size - 0.5)
                p = _reflect(p, low, high)
            if padding_mode != "zeros" and kind != "cubic":
                p = np.clip(p, 0, size - 1)
            at.append(p)
        if kind == "cubic" and padding_mode != "zeros":
            out.append(_cubic(image, at, padding_mode, align_corners))
        else:
            out.append(sample(image, at, kind, padding_mode))
    return np.stack(out).astype(x.dtype)


def _cubic(image: Array, at: list[Array], padding: str, align_corners: int) -> Array:
    """Cubic sampling where each of the taps is clamped or mirrored on its own."""
    grown = image
    # far positions need no more than a mirrored (or clamped) copy of 2 cells around the picture
    clipped = []
    for axis, (p, size) in enumerate(zip(at, image.shape[1:]), start=1):
        reach = (
            np.arange(int(np.floor(p.min())) - 1, int(np.floor(p.max())) + 4)
            if p.size
            else np.arange(1)
        )
        if padding == "reflection":
            low, high = (0, size - 1) if align_corners else (-0.5, size - 0.5)
            source = np.clip(np.rint(_reflect(reach.astype(float), low, high)), 0, size - 1)
        else:
            source = np.clip(reach, 0, size - 1)
        grown = np.take(grown, source.astype(int), axis)
        clipped.append(p - reach[0])
    return sample(grown, clipped, "cubic", "zeros")


grid_sample.kernel("cpu", "f32_grid_sample", when=all_of(rank(4), of_type(1)))
grid_sample.kernel(
    "opencl", "grid_sample",
    when=all_of(
        rank(4), of_type(1), attr("mode", "nearest", "linear", "bilinear", "cubic", "bicubic"),
        attr("padding_mode", "zeros", "border", "reflection"),
    ),
)  # fmt: skip


@grid_sample.samples
def _(draw: Draw) -> Iterator[Sample]:
    kinds = itertools.product(
        ("nearest", "linear", "cubic"), ("zeros", "border", "reflection"), (0, 1)
    )
    for mode, padding, corners in kinds:
        attrs = {"mode": mode, "padding_mode": padding, "align_corners": corners}
        for shape, reach in (((2, 3, 5, 7), 1.2), ((1, 1, 1, 9), 7.0)):
            grid = draw.rng.uniform(-reach, reach, (shape[0], 6, 11, 2)).astype(np.float32)
            yield Sample([draw(*shape), grid], attrs, constant=())


grid_sample.cost(lambda x, grid, **_: Cost(flops=product(grid.dims[:-1]) * int(x.dims[1]) * 8))

affine_grid = define_op(
    "AffineGrid",
    inputs="theta size",
    attrs={"align_corners": 0},
    attr_inputs=("size",),
    source="ONNX AffineGrid-20",
)


@affine_grid.infer
def _(theta: TypeInfo, size: TypeInfo, *, align_corners: int) -> TypeInfo:
    given = known_ints(size)
    if given is None:
        return theta.with_shape(
            unknown_dims(theta.dims[2] + 1) if isinstance(theta.dims[2], int) else None
        )
    n, _, *spatial = given
    return theta.with_shape((n, *spatial, len(spatial)))


@affine_grid.reference
def _(theta: Array, size: Array, *, align_corners: int) -> Array:
    """Positions of a sampling grid under an affine map: theta (N,n,n+1) → (N,*S,n)"""
    n, _, *spatial = (int(d) for d in size)
    lines = [
        np.linspace(-1, 1, d) if align_corners else (2 * np.arange(d) + 1) / d - 1 for d in spatial
    ]
    mesh = np.meshgrid(*lines, indexing="ij")
    points = np.stack([*mesh[::-1], np.ones(spatial)], -1).reshape(-1, len(spatial) + 1)
    y = np.matmul(points, theta.astype(np.float64).transpose(0, 2, 1))
    return y.reshape(n, *spatial, len(spatial)).astype(theta.dtype)


# ---- columns and deformed windows

col2im = define_op(
    "Col2Im",
    inputs="x image_shape block_shape",
    attrs={"dilations": [], "pads": [], "strides": []},
    attr_inputs=("image_shape", "block_shape"),
    source="ONNX Col2Im-18",
)


@col2im.infer
def _(x: TypeInfo, image: TypeInfo, block: TypeInfo, **_: Any) -> TypeInfo:
    sizes, window = known_ints(image), known_ints(block)
    n = image.dims[0]
    if sizes is None:
        sizes = list(unknown_dims(n) or ()) if isinstance(n, int) else None  # type: ignore[arg-type]
    if sizes is None:
        return x.with_shape(None)
    channels = x.dims[1] // math.prod(window) if isinstance(x.dims[1], int) and window else None
    return x.with_shape((x.dims[0], channels, *sizes))


@col2im.reference
def _(
    x: Array,
    image: Array,
    block: Array,
    *,
    dilations: list[int],
    pads: list[int],
    strides: list[int],
) -> Array:
    """Adds columns (N, C·block, L) back to the image they were cut from"""
    sizes, kernel = [int(d) for d in image], [int(d) for d in block]
    n = len(sizes)
    dilations, strides, pads = dilations or [1] * n, strides or [1] * n, pads or [0] * (2 * n)
    room = [s + pads[i] + pads[n + i] for i, s in enumerate(sizes)]
    out = [(r - d * (k - 1) - 1) // s + 1 for r, d, k, s in zip(room, dilations, kernel, strides)]
    channels = x.shape[1] // math.prod(kernel)
    columns = x.reshape(x.shape[0], channels, *kernel, *out)
    y = np.zeros((x.shape[0], channels, *room), x.dtype)
    for tap in np.ndindex(*kernel):
        at = tuple(
            slice(t * d, t * d + (o - 1) * s + 1, s)
            for t, d, o, s in zip(tap, dilations, out, strides)
        )
        y[(slice(None), slice(None), *at)] += columns[(slice(None), slice(None), *tap)]
    return y[
        (slice(None), slice(None), *(slice(pads[i], pads[i] + s) for i, s in enumerate(sizes)))
    ]


deform_conv = define_op(
    "DeformConv",
    inputs="x w offset b? mask?",
    attrs={
        "dilations": [],
        "group": 1,
        "kernel_shape": [],
        "offset_group": 1,
        "pads": [],
        "strides": [],
    },
    source="ONNX DeformConv-22",
)
deform_conv.infer(
    lambda x, w, offset, *_, **__: x.with_shape((x.dims[0], w.dims[0], *offset.dims[2:]))
)


@deform_conv.cost
def _(x: TypeInfo, w: TypeInfo, offset: TypeInfo, *_: TypeInfo | None, **__: Any) -> Cost:
    taps = math.prod(map(int, w.dims[1:]))  # type: ignore[arg-type]
    outputs = math.prod(map(int, (x.dims[0], w.dims[0], *offset.dims[2:])))  # type: ignore[arg-type]
    return Cost(macs=outputs * taps)


@deform_conv.reference
def _(
    x: Array,
    w: Array,
    offset: Array,
    b: Array | None,
    mask: Array | None,
    *,
    dilations: list[int],
    group: int,
    kernel_shape: list[int],
    offset_group: int,
    pads: list[int],
    strides: list[int],
) -> Array:
    """Convolution whose taps are moved by `offset` (N, og·K·2, H', W') and weighted by `mask`"""
    kernel, out = list(w.shape[2:]), offset.shape[2:]
    n = len(kernel)
    dilations, strides, pads = dilations or [1] * n, strides or [1] * n, pads or [0] * (2 * n)
    grids = np.meshgrid(*[np.arange(o) for o in out], indexing="ij")
    moves = offset.reshape(x.shape[0], offset_group, *kernel, n, *out)
    weights = None if mask is None else mask.reshape(x.shape[0], offset_group, *kernel, *out)
    per_offset = x.shape[1] // offset_group
    y = np.zeros((x.shape[0], group, w.shape[0] // group, *out), wide(x).dtype)
    wg = w.reshape(group, w.shape[0] // group, w.shape[1], *kernel)
    for tap in np.ndindex(*kernel):
        columns = np.zeros((x.shape[0], x.shape[1], *out), y.dtype)
        for i, g in itertools.product(range(x.shape[0]), range(offset_group)):
            at = [
                grids[a] * strides[a] - pads[a] + tap[a] * dilations[a] + moves[(i, g, *tap, a)]
                for a in range(n)
            ]
            channels = slice(g * per_offset, (g + 1) * per_offset)
            part = sample(wide(x[i, channels]), at, "linear", "zeros")
            columns[i, channels] = part if weights is None else part * weights[(i, g, *tap)]
        grouped = columns.reshape(x.shape[0], group, -1, *out)
        y += np.einsum("goc,ngc...->ngo...", wg[(slice(None),) * 3 + tap], grouped)
    y = y.reshape(x.shape[0], w.shape[0], *out)
    return (y if b is None else y + b.reshape(1, -1, *[1] * n)).astype(x.dtype)
