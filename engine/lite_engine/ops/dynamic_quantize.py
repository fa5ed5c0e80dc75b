"""DynamicQuantizeConv, DynamicQuantizeGemm: layers whose float inputs become bytes as they run.

Each image, or each pixel or row of a matrix, gets a scale and a zero point from its own range:
x ≈ (q − zero) · x_scale. The sums Σ (q − zero)·w of bytes are exact and become floats again. LiteRT
computes so with the weights of dynamic-range models; its two sets of kernels follow two rules:

`ties="even"` (XNNPACK's): integers of one = 255 / (highest − lowest), q rounded half to even,
y = sum·x_scale·w_scale + b, the first product rounded, the second and the sum as one.
`ties="away"` (LiteRT's own): x_scale = (highest − lowest) / 255, halves away from 0; each operation
is rounded: sum·w_scale·x_scale + b for whole fours of channels, sum·x_scale·w_scale + b for the
rest. `symmetric`: x_scale = |x|'s highest / 127 with the zero point 0, as older converters ask for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import Node, TypeInfo
from ._conditions import all_of, constant, of_type
from ._conv_window import WINDOW
from ._core import define_op
from ._records import Cost
from ._samples import Draw, Sample
from .conv import conv, correlate

Array = np.ndarray
_WEIGHTS = ("w", "w_scale", "b")


def parameters(
    x: Array, axes: tuple[int, ...], ties: str, symmetric: bool
) -> tuple[Array, Array, Array]:
    """Integers of one, scale and zero point of each range along `axes`, which stay as size 1."""
    f32 = np.float32
    if symmetric:
        widest = np.abs(x).max(axes, keepdims=True, initial=0)
        widest = np.where(widest == 0, f32(127), widest)
        return f32(127) / widest, widest / f32(127), np.zeros_like(widest)
    low = np.minimum(x.min(axes, keepdims=True, initial=0), f32(0))
    high = np.maximum(x.max(axes, keepdims=True, initial=0), f32(0))
    width = np.where(low == high, f32(255), high - low).astype(f32)
    if ties == "away":
        scale = width / f32(255)
        factor, at_low, at_high = f32(1) / scale, low / scale, high / scale
    else:
        factor = f32(255) / width
        scale, at_low, at_high = f32(1) / factor, low * factor, high * factor
    from_low = (f32(-128) + at_low) + (f32(127) + at_high) > 0
    zero = np.clip(np.where(from_low, f32(-128) - at_low, f32(127) - at_high), -128, 127)
    empty = 0 if ties == "away" else 127
    return factor, scale, np.where(low == high, empty, rounded(zero, ties))


def rounded(x: Array, ties: str) -> Array:
    if ties == "away":
        return np.trunc(x + np.where(x < 0, np.float32(-0.5), np.float32(0.5)))
    return np.asarray(np.rint(x))


def centred(
    x: Array, axes: tuple[int, ...], ties: str, symmetric: bool = False
) -> tuple[Array, Array]:
    """q − zero as floats, and the scale."""
    factor, scale, zero = parameters(x, axes, ties, symmetric)
    q = np.clip(rounded(x * factor, ties) + zero, -128, 127)
    return (q - zero).astype(np.float64), scale


def scaled(sums: Array, x_scale: Array, w_scale: Array, b: Array | None, ties: str) -> Array:
    """Exact sums (…, channels last) as floats, b or 0 added."""
    f32 = np.float32
    real = sums.astype(f32)
    w_scale = np.broadcast_to(w_scale.ravel().astype(f32), real.shape[-1:])
    bias = f32(0) if b is None else b
    if ties != "away":
        exact = (real * x_scale).astype(np.float64) * w_scale
        return np.asarray((exact + bias).astype(f32))
    in_fours = np.arange(real.shape[-1]) < real.shape[-1] // 4 * 4
    return np.where(in_fours, real * w_scale * x_scale, real * x_scale * w_scale) + bias


def _check_ties(ties: str) -> None:
    if ties not in ("even", "away"):
        raise ShapeError(tr('ties must be "even" or "away", got {ties}', ties=ties))


dynamic_conv = define_op(
    "DynamicQuantizeConv",
    dynamic=True,
    inputs="x w w_scale b?",
    attrs={**WINDOW, "scale_per": "image", "ties": "even"},
    layout="channels_last",
    packed_inputs=_WEIGHTS,
    source="a Conv as LiteRT runs dynamic-range models",
)


@dynamic_conv.infer
def _(
    x: TypeInfo, w: TypeInfo, w_scale: TypeInfo, b: TypeInfo | None,
    *, scale_per: str, ties: str, **window: Any,
) -> TypeInfo:  # fmt: skip
    _check_ties(ties)
    if scale_per not in ("image", "pixel"):
        raise ShapeError(tr('scale_per must be "image" or "pixel", got {what}', what=scale_per))
    if scale_per == "pixel" and any(d != 1 for d in (*w.dims[2:], *window["strides"])):
        raise ShapeError(tr("a scale for each pixel needs a 1x1 kernel with stride 1"))
    assert conv._infer is not None
    out = conv._infer(x, w, b, None, **window)
    assert isinstance(out, TypeInfo)
    return out


@dynamic_conv.reference
def _(
    x: Array, w: Array, w_scale: Array, b: Array | None,
    *, scale_per: str, ties: str, **window: Any,
) -> Array:  # fmt: skip
    """x (N,C,*S) float, w (O,C/g,*K) i8, w_scale one or (O,), b (O,) → (N,O,*S')"""
    axes = (1,) if scale_per == "pixel" else tuple(range(1, x.ndim))
    q, x_scale = centred(x, axes, ties)
    sums = np.rint(correlate(q, w.astype(np.float64), window))
    last = scaled(np.moveaxis(sums, 1, -1), np.moveaxis(x_scale, 1, -1), w_scale, b, ties)
    return np.ascontiguousarray(np.moveaxis(last, -1, 1))


@dynamic_conv.cost
def _(x: TypeInfo, w: TypeInfo, w_scale: TypeInfo, b: TypeInfo | None, **attrs: Any) -> Cost:
    assert conv._cost is not None
    window = {name: attrs[name] for name in WINDOW}
    own = conv._cost(x, w, b, None, activation="", activation_params=[], **window)
    return Cost(macs=own.macs, flops=own.flops + 4 * x.size)


dynamic_gemm = define_op(
    "DynamicQuantizeGemm",
    dynamic=True,
    inputs="a w w_scale b?",
    attrs={"ties": "even", "symmetric": False},
    packed_inputs=_WEIGHTS,
    source="a dense layer as LiteRT runs dynamic-range models",
)


@dynamic_gemm.infer
def _(
    a: TypeInfo, w: TypeInfo, w_scale: TypeInfo, b: TypeInfo | None,
    *, ties: str, symmetric: bool,
) -> TypeInfo:  # fmt: skip
    _check_ties(ties)
    if w.rank != 2 or not a.dims:
        raise ShapeError(tr("w must be a matrix of one row per output"))
    if isinstance(a.dims[-1], int) and isinstance(w.dims[1], int) and a.dims[-1] != w.dims[1]:
        raise ShapeError(tr("the last axis of a must have size {k}", k=w.dims[1]))
    return a.with_shape((*a.dims[:-1], w.dims[0]))


@dynamic_gemm.reference
def _(a: Array, w: Array, w_scale: Array, b: Array | None, *, ties: str, symmetric: bool) -> Array:
    """a (…,K) float, each row with a scale of its own, w (N,K) i8, b (N,) → (…,N)"""
    q, a_scale = centred(a, (-1,), ties, symmetric)
    return scaled(np.rint(q @ w.T.astype(np.float64)), a_scale, w_scale, b, ties)


@dynamic_gemm.cost
def _(a: TypeInfo, w: TypeInfo, w_scale: TypeInfo, b: TypeInfo | None, **attrs: object) -> Cost:
    rows, outputs = a.with_shape(a.dims[:-1]).size, w.with_shape(w.dims[:1]).size
    return Cost(macs=a.size * outputs, flops=4 * a.size + 2 * rows * outputs)


def _planar(node: Node, types: list[TypeInfo | None]) -> bool | str:
    x = types[0]
    return (x is not None and x.rank in (3, 4)) or tr(
        "only 1-D and 2-D convolutions have this kernel"
    )


_BYTES = all_of(constant(1, 2, 3), of_type(1, dtype="i8"))
dynamic_conv.kernel(
    "cpu", "f32_conv2d_dynamic", dtype="f32", when=all_of(_planar, _BYTES),
    why=tr("the input is quantized to int8 with the range of each image"),
)  # fmt: skip
dynamic_gemm.kernel(
    "cpu",
    "f32_gemm_dynamic",
    dtype="f32",
    when=_BYTES,
    why=tr("the input is quantized to int8 with the range of each row"),
)


def _weights(draw: Draw, *shape: int) -> list[Array]:
    w = draw.ints(-127, 128, *shape, dtype=np.int8)
    return [w, np.abs(draw.f32(shape[0], scale=0.01)), draw.f32(shape[0])]


@dynamic_conv.samples
def _(draw: Draw) -> Iterator[Sample]:
    fixed = (1, 2, 3)
    for ties in ("even", "away"):
        for shape, out, kernel, extra in (
            ((1, 16, 9, 7), 8, 3, {"pads": [1, 1, 1, 1]}),
            ((2, 6, 9, 9), 35, 3, {"strides": [2, 2]}),
            ((1, 3, 12, 11), 10, 5, {"pads": [2, 2, 2, 2], "strides": [2, 1]}),
            ((2, 24, 5, 6), 17, 1, {"scale_per": "pixel"}),
            ((1, 10, 7, 7), 10, 3, {"group": 10, "pads": [1, 1, 1, 1]}),
        ):
            x = draw.f32(*shape)
            per_group = 1 if "group" in extra else shape[1]
            inputs = [x, *_weights(draw, out, per_group, kernel, kernel)]
            yield Sample(inputs, {"ties": ties, **extra}, constant=fixed)


@dynamic_gemm.samples
def _(draw: Draw) -> Iterator[Sample]:
    for ties in ("even", "away"):
        for rows, k, n in ((1, 5, 3), (7, 33, 16), (9, 64, 17), (40, 19, 65)):
            x = draw.f32(rows, k)
            yield Sample([x, *_weights(draw, n, k)], {"ties": ties}, constant=(1, 2, 3))
    more = {"ties": "away", "symmetric": True}
    yield Sample([draw.f32(6, 33), *_weights(draw, 17, 33)], more, constant=(1, 2, 3))
