"""Resize: nearest, linear and cubic sampling on a separable grid."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import Dim, Node, TypeInfo
from ._conditions import all_of, attr, rank
from ._core import define_op
from ._helpers import (
    float_kernels,
    known_ints,
    normalise_axes,
    symbol_product,
    symbol_quotient,
    unknown_dims,
    wide,
)
from ._records import Cost
from ._samples import Draw, Sample

resize = define_op(
    "Resize",
    transpose_rule="resize",
    integer_form="keep",
    inputs="x roi? scales? sizes?",
    attrs={
        "antialias": 0,
        "axes": None,
        "coordinate_transformation_mode": "half_pixel",
        "cubic_coeff_a": -0.75,
        "exclude_outside": 0,
        "extrapolation_value": 0.0,
        "keep_aspect_ratio_policy": "stretch",
        "mode": "nearest",
        "nearest_mode": "round_prefer_floor",
    },
    layout="channels_last",
    attr_inputs=("roi", "scales", "sizes"),
    axis_attrs=("axes",),
    # roi has start… and end…, like pads
    per_axis_attrs=("roi", "scales", "sizes"),
    source="ONNX Resize-19",
)


def _scaled(size: str | None, scale: float) -> Dim:
    """⌊size · scale⌋ of an open size, where the scale is a whole number or a part of one."""
    if size is None or scale == 1:
        return size
    if scale == int(scale):
        return symbol_product(size, int(scale))
    parts = round(1 / scale)
    return symbol_quotient(size, 0, parts) if 1 / parts == scale else None


def resize_plan(
    dims: tuple[Dim, ...],
    scales: list[float] | None,
    sizes: list[int] | None,
    axes: list[int] | None,
    policy: str,
) -> tuple[list[Dim], list[float]]:
    """Output dimensions and the scale of every axis. Raises ShapeError."""
    rank = len(dims)
    chosen = normalise_axes(axes, rank) if axes is not None else list(range(rank))
    given = scales if scales is not None else sizes
    if given is None or len(given) != len(chosen):
        raise ShapeError(
            tr(
                "expected a scale or size for each of {axes} axes, found {scales}",
                scales=len(given or ()),
                axes=len(chosen),
            )
        )
    out: list[Dim] = list(dims)
    factor = [1.0] * rank
    if scales is not None:
        for axis, s in zip(chosen, scales):
            if not s > 0:
                raise ShapeError(tr("a scale must be greater than 0, found {s}", s=s))
            d = dims[axis]
            out[axis] = int(np.floor(d * s)) if isinstance(d, int) else _scaled(d, s)
            factor[axis] = float(s)
        return out, factor
    assert sizes is not None
    known = [(a, n, dims[a]) for a, n in zip(chosen, sizes)]
    ratios = [n / d for _, n, d in known if isinstance(d, int) and d]
    for axis, n, d in known:
        if policy == "stretch" or not ratios:
            out[axis], factor[axis] = n, n / d if isinstance(d, int) and d else 1.0
        else:
            ratio = min(ratios) if policy == "not_larger" else max(ratios)
            factor[axis] = ratio
            out[axis] = int(np.floor(ratio * d + 0.5)) if isinstance(d, int) else None
    return out, factor


@resize.infer
def _(
    x: TypeInfo,
    roi: TypeInfo | None,
    scales: TypeInfo | None,
    sizes: TypeInfo | None,
    *,
    axes: list[int] | None,
    keep_aspect_ratio_policy: str,
    **_: Any,
) -> TypeInfo:
    given = scales if scales is not None else sizes
    if given is None:
        raise ShapeError(tr("neither scales nor sizes are given"))
    if given.const is None:
        return x.with_shape(unknown_dims(x.rank))
    factors = (
        None if scales is None or scales.const is None else [float(s) for s in scales.const.ravel()]
    )
    out, _factor = resize_plan(x.dims, factors, known_ints(sizes), axes, keep_aspect_ratio_policy)
    return x.with_shape(tuple(out))


def source_positions(
    n_in: int, n_out: int, scale: float, mode: str, roi: tuple[float, float] = (0.0, 1.0),
    *, nearest: bool = False,
) -> np.ndarray:  # fmt: skip
    """Where each output position lies in the input, by ONNX's coordinate_transformation_mode. The
    `nearest` one is found in float32, as onnxruntime finds it: whole positions of some ratios are
    only near in any precision."""
    dtype: type[np.floating] = np.float32 if nearest else np.float64
    at, scale = np.arange(n_out, dtype=dtype), dtype(scale)  # type: ignore[assignment]
    if mode == "asymmetric":
        return at / scale
    if mode == "align_corners":
        return at * (n_in - 1) / (n_out - 1) if n_out > 1 else np.zeros(1)
    if mode == "pytorch_half_pixel" and n_out <= 1:
        return np.zeros(n_out)
    if mode in ("half_pixel", "pytorch_half_pixel"):
        return (at + 0.5) / scale - 0.5
    if mode == "half_pixel_symmetric":
        # the output grid is centred although n_in · scale is not whole
        adjustment = n_out / (scale * n_in) if n_in else 1.0
        shift = float(dtype(n_in / 2) * (1 - adjustment))
        # onnxruntime divides in doubles here, and only here
        return np.asarray(shift + (at.astype(np.float64) + 0.5) / float(scale) - 0.5).astype(dtype)
    if mode == "tf_half_pixel_for_nn":
        return (at + 0.5) / scale
    if mode == "tf_crop_and_resize":
        start, end = roi
        if n_out > 1:
            return start * (n_in - 1) + at * (end - start) * (n_in - 1) / (n_out - 1)
        return np.full(n_out, 0.5 * (start + end) * (n_in - 1))
    raise ShapeError(tr("coordinate_transformation_mode {mode!r}", mode=mode))


#: Positions within so much of the middle between two pixels are in the middle.
_TIE = 1e-5


def _nearest(position: np.ndarray, mode: str) -> np.ndarray:
    if mode == "floor":
        return np.floor(position)
    if mode == "ceil":
        return np.ceil(position)
    if mode in ("round_prefer_ceil", "round_prefer_floor"):
        low = np.floor(position)
        tie = 0.5 - _TIE if mode == "round_prefer_ceil" else 0.5 + _TIE
        return low + (position - low > tie)
    raise ShapeError(tr("nearest_mode {mode!r}", mode=mode))


def nearest_places(n_in: int, n_out: int, scale: float, mode: str, nearest_mode: str) -> np.ndarray:
    """The input position that each output position of mode "nearest" takes."""
    position = source_positions(n_in, n_out, scale, mode, nearest=True)
    return np.clip(_nearest(position, nearest_mode), 0, n_in - 1).astype(np.int64)


def _kernel(distance: np.ndarray, mode: str, a: float) -> np.ndarray:
    """Weight of a sample at a distance: triangle, or Keys' cubic."""
    d = np.abs(distance)
    if mode == "linear":
        return np.maximum(0, 1 - d)
    near = (a + 2) * d**3 - (a + 3) * d**2 + 1
    far = a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0))


def axis_weights(
    n_in: int,
    position: np.ndarray,
    scale: float,
    *,
    mode: str,
    nearest_mode: str,
    cubic_coeff_a: float,
    exclude_outside: int,
    antialias: int,
) -> np.ndarray:
    """Matrix (n_out, n_in) that resamples one axis; its rows add up to 1."""
    matrix = np.zeros((len(position), n_in))
    rows = np.arange(len(position))
    if mode == "nearest":
        at = np.clip(_nearest(position, nearest_mode), 0, n_in - 1).astype(int)
        matrix[rows, at] = 1
        return matrix
    stretch = 1 / scale if antialias and scale < 1 else 1.0
    support = (1 if mode == "linear" else 2) * stretch
    first = np.floor(position - support).astype(int) + 1
    taps = int(np.ceil(2 * support)) + 1
    at = first[:, None] + np.arange(taps)
    weights = _kernel((at - position[:, None]) / stretch, mode, cubic_coeff_a)
    if exclude_outside:
        weights = np.where((at >= 0) & (at < n_in), weights, 0)
    weights /= weights.sum(1, keepdims=True)
    np.add.at(matrix, (rows[:, None], np.clip(at, 0, n_in - 1)), weights)
    return matrix


@resize.reference
def _(
    x: np.ndarray,
    roi: np.ndarray | None,
    scales: np.ndarray | None,
    sizes: np.ndarray | None,
    *,
    axes: list[int] | None,
    coordinate_transformation_mode: str,
    extrapolation_value: float,
    keep_aspect_ratio_policy: str,
    mode: str,
    **kernel: Any,
) -> np.ndarray:
    """Resamples axis by axis: y = x · Wᵀ per resized axis"""
    if mode not in ("nearest", "linear", "cubic"):
        raise ShapeError(tr("the mode {mode!r} is not known", mode=mode))
    out, factor = resize_plan(
        x.shape,
        None if scales is None else [float(s) for s in scales.ravel()],
        None if sizes is None else [int(s) for s in sizes.ravel()],
        axes,
        keep_aspect_ratio_policy,
    )
    chosen = normalise_axes(axes, x.ndim) if axes is not None else list(range(x.ndim))
    y: np.ndarray = wide(x) if x.dtype.kind == "f" else x
    outside = np.zeros([1] * x.ndim, bool)
    for i, axis in enumerate(chosen):
        n_in, n_out = x.shape[axis], int(out[axis] or 0)
        window = (0.0, 1.0)
        if roi is not None and coordinate_transformation_mode == "tf_crop_and_resize":
            window = (float(roi[i]), float(roi[len(chosen) + i]))
        if n_in == n_out and factor[axis] == 1 and window == (0.0, 1.0):
            continue
        position = source_positions(
            n_in, n_out, factor[axis], coordinate_transformation_mode, window,
            nearest=mode == "nearest",
        )  # fmt: skip
        y = _resample(y, axis, position, factor[axis], mode=mode, **kernel)
        if coordinate_transformation_mode == "tf_crop_and_resize":
            beyond = (position < 0) | (position > n_in - 1)
            outside = outside | beyond.reshape([-1 if j == axis else 1 for j in range(x.ndim)])
    if outside.any():
        y = np.where(outside, extrapolation_value, y)
    return _rounded(y, x.dtype)


def _rounded(y: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Interpolated integers are truncated to the element type, as the ONNX reference does."""
    if dtype.kind == "f" or y.dtype == dtype:
        return y.astype(dtype, copy=False)
    info = np.iinfo(dtype)
    return np.clip(y, info.min, info.max).astype(dtype)


def _resample(
    y: np.ndarray, axis: int, position: np.ndarray, scale: float, *, mode: str, **kernel: Any
) -> np.ndarray:
    if mode == "nearest":
        at = np.clip(_nearest(position, kernel["nearest_mode"]), 0, y.shape[axis] - 1)
        return np.take(y, at.astype(int), axis)
    matrix = axis_weights(y.shape[axis], position, scale, mode=mode, **kernel)
    matrix = matrix.astype(y.dtype) if y.dtype.kind == "f" else matrix
    return np.moveaxis(np.matmul(np.moveaxis(y, axis, -1), matrix.T), -1, axis)


@resize.cost
def _(
    x: TypeInfo, roi: TypeInfo | None, scales: TypeInfo | None, sizes: TypeInfo | None, **attrs: Any
) -> Cost:
    assert resize._infer is not None
    y = resize._infer(x, roi, scales, sizes, **attrs)
    per_output = {"nearest": 0, "linear": 8, "cubic": 36}.get(attrs["mode"], 8)
    return Cost(flops=y.size * per_output)  # type: ignore[union-attr]


def _off_the_crop(node: Node, types: list[TypeInfo | None]) -> bool | str:
    mode = node.attrs.get("coordinate_transformation_mode", "half_pixel")
    return mode != "tf_crop_and_resize" or tr("bilinear crops have no lookup table")


def _spatial_only(node: Node, types: list[TypeInfo | None]) -> bool | str:
    x, y = types[0], node.output.shape
    same = x is not None and x.shape is not None and y is not None and x.shape[:2] == y[:2]
    return same or tr("batch or channels are resized")


def _depth_kept(node: Node, types: list[TypeInfo | None]) -> bool | str:
    x, y = types[0], node.output.shape
    if x is None or x.rank < 5 or x.shape is None or y is None or x.shape[2] == y[2]:
        return True
    return tr("depth is resized")


_TABLED = (
    rank(3, 4, 5),
    _depth_kept,
    attr("axes", None),
    attr("keep_aspect_ratio_policy", "stretch"),
    attr(
        "coordinate_transformation_mode", "half_pixel", "asymmetric", "align_corners",
        "pytorch_half_pixel", "tf_half_pixel_for_nn", "half_pixel_symmetric",
    ),
    _spatial_only,
)  # fmt: skip
float_kernels(resize, "resize", accepts_pitch=True, accepts_halo=True, when=all_of(*_TABLED))
resize.kernel(
    "cpu", "i8_resize", dtype="i8,u8", accepts_pitch=True, accepts_halo=True,
    when=all_of(*_TABLED, attr("mode", "nearest")), rank=1, why=tr("the nearest pixel's bytes"),
)  # fmt: skip
resize.kernel(
    "opencl", "resize", dtype="f32,f16",
    when=all_of(rank(4), attr("axes", None), _off_the_crop, _spatial_only),
    why=tr("taps of each row and column from a table"),
)  # fmt: skip
resize.kernel(
    "opencl", "i8_resize", dtype="i8,u8", rank=1, why=tr("the nearest pixel's bytes"),
    when=all_of(rank(4), attr("axes", None), attr("mode", "nearest"), _off_the_crop, _spatial_only),
)  # fmt: skip


@resize.samples
def _(draw: Draw) -> Iterator[Sample]:
    for mode in ("nearest", "linear", "cubic"):
        for coordinates in ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"):
            attrs = {"mode": mode, "coordinate_transformation_mode": coordinates}
            for shape, scales in (
                ((1, 3, 5, 7), (1, 1, 2, 2)), ((2, 18, 6, 5), (1, 1, 1.5, 0.6)),
                ((1, 33, 4, 4), (1, 1, 3, 1)),
            ):  # fmt: skip
                yield Sample([draw(*shape), None, np.array(scales, np.float32)], attrs)
    x, sizes = draw(1, 5, 16, 12), np.array([1, 5, 4, 30])
    yield Sample([x, None, None, sizes], {"mode": "linear", "antialias": 1})
    yield Sample([x, None, None, sizes], {"mode": "nearest", "nearest_mode": "floor"})
