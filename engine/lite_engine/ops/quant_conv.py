"""Integer convolutions: QLinearConv, QLinearConvTranspose and ConvInteger.

acc = Σ (x − x_zp)·(w − w_zp) + b; y = clamp(round_half_even(float32(acc) · x_s·w_s/y_s) + y_zp).
A residual r adds float32(r − r_zp) · (r_s/y_s) before the one rounding. With parameters of the sum
there are two: s = clamp(round_half_even(float32(acc) · x_s·w_s/s_s) + s_zp), to the type of y, and
y = clamp(round_half_even(float32(s − s_zp) · (s_s/y_s) + float32(r − r_zp) · (r_s/y_s)) + y_zp).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import DType, Node, TypeInfo
from . import litert16
from ._conditions import absent, all_of, byte_output, constant, of_type, rank, within_frames
from ._conv_window import WINDOW, conv_window
from ._core import define_op
from ._helpers import product
from ._records import Cost
from ._samples import Draw, Sample
from ._scales import Scale, per_axis, requantize, saturate
from ._sparse import MULTIPLIES_ZEROS, SKIPS_ZEROS, pointwise, words_of_zeros
from .conv import conv, correlate
from .conv_transpose import TRANSPOSED_WINDOW, conv_transpose, depth_ends, stride_limit

Array = np.ndarray


def integer_conv(
    x: Array, x_zero: Array | None, w: Array, w_zero: Array | None, attrs: dict[str, Any]
) -> Array:
    """Σ (x − x_zp)·(w − w_zp), exact; padding counts as x_zp, that is 0. → int64 (N,O,*S')"""
    xf, wf = x.astype(np.float64), w.astype(np.float64)
    if x_zero is not None:
        xf = xf - float(x_zero.ravel()[0])
    if w_zero is not None:
        wf = wf - per_axis(w_zero, 0, w.ndim).astype(np.float64)
    return np.rint(correlate(xf, wf, attrs)).astype(np.int64)


def _conv_shape(x: TypeInfo, w: TypeInfo, attrs: dict[str, Any]) -> TypeInfo:
    assert conv._infer is not None
    out = conv._infer(x, w, None, None, **attrs)
    assert isinstance(out, TypeInfo)
    return out


def _check_scales(w_scale: TypeInfo, channels: Any) -> None:
    """Raises ShapeError unless there is one scale, or one per output channel."""
    if w_scale.is_static and isinstance(channels, int) and w_scale.size not in (1, channels):
        raise ShapeError(
            tr(
                "expected one weight scale, or one for each of {channels} output "
                "channels, found {size}",
                size=w_scale.size,
                channels=channels,
            )
        )


def _conv_cost(x: TypeInfo, w: TypeInfo, attrs: dict[str, Any]) -> Cost:
    y = _conv_shape(x, w, attrs)
    kernel, *_ = conv_window(x, w, attrs)
    per_output = int(w.dims[1] or 0)  # type: ignore[call-overload]
    for k in kernel:
        per_output *= k
    return Cost(macs=y.size * per_output, flops=4 * y.size)


def _requantized(
    acc: Array, b: Array | None, x_scale: Array, w_scale: Array, y_scale: Array, y_zero: Array,
    added: Array | None = None,
) -> Array:  # fmt: skip
    """Sums (N,O,*S'), a bias (O,) and what else is added, in units of y, as integers of y."""
    if b is not None:
        acc = acc + b.reshape(1, -1, *[1] * (acc.ndim - 2))
    if y_zero.dtype == np.int16:
        each = per_axis(w_scale, 1, acc.ndim)
        y = litert16.convolved(acc, x_scale.reshape(()), each, y_scale.reshape(()))
        return saturate(y, y_zero.dtype)
    scale = (x_scale.reshape(()) * per_axis(w_scale, 1, acc.ndim)) / y_scale.reshape(())
    return requantize(acc, scale, y_zero.reshape(()), added)


_QUANTISED_CONV = "x x_scale x_zero_point w w_scale w_zero_point y_scale y_zero_point b?"
_QUANTISED_ATTRS = (
    "x_scale", "x_zero_point", "w_scale", "w_zero_point", "y_scale", "y_zero_point",
)  # fmt: skip

qlinear_conv = define_op(
    "QLinearConv",
    inputs=f"{_QUANTISED_CONV} residual? residual_scale? residual_zero_point? "
    "sum_scale? sum_zero_point?",
    attrs=WINDOW,
    layout="channels_last",
    attr_inputs=(
        *_QUANTISED_ATTRS,
        "residual_scale", "residual_zero_point", "sum_scale", "sum_zero_point",
    ),
    source="ONNX QLinearConv-10; the residual is ours",
    tolerance=0,
)  # fmt: skip


@qlinear_conv.infer
def _(
    x: TypeInfo, x_scale: TypeInfo, x_zero: TypeInfo, w: TypeInfo, w_scale: TypeInfo,
    w_zero: TypeInfo, y_scale: TypeInfo, y_zero: TypeInfo, *_: TypeInfo | None, **attrs: Any,
) -> TypeInfo:  # fmt: skip
    y = _conv_shape(x, w, attrs)
    _check_scales(w_scale, y.dims[1])
    return TypeInfo(y_zero.dtype, y.shape)


@qlinear_conv.reference
def _(
    x: Array, x_scale: Array, x_zero: Array, w: Array, w_scale: Array, w_zero: Array,
    y_scale: Array, y_zero: Array, b: Array | None, residual: Array | None,
    residual_scale: Array | None, residual_zero: Array | None, sum_scale: Array | None,
    sum_zero: Array | None, **attrs: Any,
) -> Array:  # fmt: skip
    """w_scale and w_zp per tensor or per output channel, b int32 of scale x_s·w_s, residual like y
    in shape with one scale and zero point of its own; the sum's zero point has the type of y"""
    acc = integer_conv(x, x_zero, w, w_zero, attrs)
    if residual is None:
        return _requantized(acc, b, x_scale, w_scale, y_scale, y_zero)
    assert residual_scale is not None and residual_zero is not None
    shifted = Scale(residual_scale, residual_zero).shifted(residual).astype(np.float32)
    added = shifted * (residual_scale.reshape(()) / y_scale.reshape(()))
    if sum_scale is None:
        return _requantized(acc, b, x_scale, w_scale, y_scale, y_zero, added)
    assert sum_zero is not None
    sums = _requantized(acc, b, x_scale, w_scale, sum_scale, sum_zero)
    ratio = sum_scale.reshape(()) / y_scale.reshape(())
    return requantize(Scale(sum_scale, sum_zero).shifted(sums), ratio, y_zero.reshape(()), added)


@qlinear_conv.cost
def _(x: TypeInfo, x_scale: TypeInfo, x_zero: TypeInfo, w: TypeInfo, *_: Any, **attrs: Any) -> Cost:
    return _conv_cost(x, w, attrs)


#: What the integer GEMM takes: one scale for x and y, constant weights of bytes.
INTEGER_GEMM = all_of(constant(1, 2, 3, 4, 5, 6, 7, 8), of_type(3, dtype="i8,u8"), byte_output)
_RESIDUAL = all_of(constant(10, 11, 12, 13), of_type(9, dtype="i8,u8"))


def _one_filter_per_channel(node: Node, types: list[TypeInfo | None]) -> bool | str:
    x, w = types[0], types[3]
    if x is None or w is None:
        return tr("an input is missing")
    depthwise = node.attrs.get("group", 1) == x.dims[1] == w.dims[0] and w.dims[1] == 1
    return depthwise or tr("not depthwise")


qlinear_conv.kernel(
    "cpu",
    "i8_conv2d_depthwise",
    dtype="i8,u8",
    accepts_pitch=True,
    accepts_halo=True,
    rank=0,
    when=all_of(within_frames, INTEGER_GEMM, absent(9), _one_filter_per_channel),
    why=tr("one integer filter per channel"),
)
qlinear_conv.kernel(
    "cpu",
    "i8_conv2d_gemm",
    dtype="i8,u8",
    accepts_pitch=True,
    accepts_halo=True,
    rank=1,
    when=all_of(within_frames, INTEGER_GEMM, _RESIDUAL),
    why=tr("integer convolution as GEMM over taps"),
)
# Two kernels by name: the GEMM takes either by itself, by what it expects of the machine that runs.
for _name, _halo, _why in (
    ("i8_conv_sparse", False, SKIPS_ZEROS), ("i8_conv_dense", True, MULTIPLIES_ZEROS)
):  # fmt: skip
    qlinear_conv.kernel(
        "cpu", _name, dtype="i8,u8", accepts_pitch=True, accepts_halo=_halo, rank=4, why=_why,
        when=all_of(rank(4), INTEGER_GEMM, _RESIDUAL, pointwise, words_of_zeros),
    )  # fmt: skip

#: What LiteRT's 16-bit convolutions take: x and y of 16 bits, constant weights of i8.
_SIXTEEN = (
    constant(1, 2, 3, 4, 5, 6, 7, 8), of_type(3, dtype="i8"), of_type(7, dtype="i16"), rank(3, 4)
)  # fmt: skip
qlinear_conv.kernel(
    "cpu", "i16_conv", dtype="i16", accepts_pitch=True, accepts_halo=True, rank=2,
    when=all_of(*_SIXTEEN, absent(9)),
    why=tr("16-bit convolution over taps"),
)  # fmt: skip


def _few_taps(node: Node, types: list[TypeInfo | None]) -> bool | str:
    w = types[3]
    taps = product(w.dims[2:]) if w is not None else 0
    return taps <= _EXACT_TAPS or tr("{taps} taps, more than {most}", taps=taps, most=_EXACT_TAPS)


def _one_group(node: Node, types: list[TypeInfo | None]) -> bool | str:
    return node.attrs.get("group", 1) == 1 or tr("grouped")


#: Products of bytes whose sum float arithmetic holds exactly.
_EXACT_TAPS = 2**24 // 255**2
_device = (rank(3, 4), INTEGER_GEMM, _RESIDUAL)
qlinear_conv.kernel(
    "opencl", "i8_conv2d_depthwise", dtype="i8,u8", rank=0,
    when=all_of(*_device, _one_filter_per_channel, _few_taps),
    why=tr("one integer filter per channel"),
)  # fmt: skip
qlinear_conv.kernel(
    "opencl", "i8_conv2d", dtype="i8,u8", rank=1, when=all_of(*_device, _one_group),
    why=tr("integer convolution as implicit GEMM"),
)  # fmt: skip
qlinear_conv.kernel(
    "opencl", "i8_conv2d_grouped", dtype="i8,u8", rank=2, when=all_of(*_device),
    why=tr("one integer output a work-item"),
)  # fmt: skip

qlinear_conv_transpose = define_op(
    "QLinearConvTranspose",
    inputs=_QUANTISED_CONV,
    attrs=TRANSPOSED_WINDOW,
    layout="channels_last",
    attr_inputs=_QUANTISED_ATTRS,
    source="ours: ConvTranspose in the manner of QLinearConv",
    tolerance=0,
)


@qlinear_conv_transpose.infer
def _(
    x: TypeInfo, x_scale: TypeInfo, x_zero: TypeInfo, w: TypeInfo, w_scale: TypeInfo,
    w_zero: TypeInfo, y_scale: TypeInfo, y_zero: TypeInfo, *_: TypeInfo | None, **attrs: Any,
) -> TypeInfo:  # fmt: skip
    assert conv_transpose._infer is not None
    y = conv_transpose._infer(x, w, None, activation="", activation_params=[], **attrs)
    assert isinstance(y, TypeInfo)
    _check_scales(w_scale, y.dims[1])
    return TypeInfo(y_zero.dtype, y.shape)


@qlinear_conv_transpose.reference
def _(
    x: Array, x_scale: Array, x_zero: Array, w: Array, w_scale: Array, w_zero: Array,
    y_scale: Array, y_zero: Array, b: Array | None, **attrs: Any,
) -> Array:  # fmt: skip
    """x (N,C,*S), w (C,O/g,*K); w_scale and w_zp per tensor or per output channel (O,), b int32 of
    scale x_s·w_s. All products of an output are summed before the one rounding."""
    group = attrs["group"]
    xf = x.astype(np.float64) - float(x_zero.reshape(()))
    zeros = np.broadcast_to(w_zero.ravel().astype(np.float64), (group * w.shape[1],))
    own = zeros.reshape(group, 1, w.shape[1], *[1] * (w.ndim - 2))
    wf = (w.reshape(group, -1, *w.shape[1:]) - own).reshape(w.shape)
    assert conv_transpose._reference is not None
    sums = conv_transpose._reference(xf, wf, None, activation="", activation_params=[], **attrs)
    acc = np.rint(sums).astype(np.int64)
    return _requantized(acc, b, x_scale, w_scale, y_scale, y_zero)


@qlinear_conv_transpose.cost
def _(x: TypeInfo, x_scale: TypeInfo, x_zero: TypeInfo, w: TypeInfo, *_: Any, **attrs: Any) -> Cost:
    return Cost(macs=x.size * product(w.dims[1:]), flops=4 * x.size)


qlinear_conv_transpose.kernel(
    "cpu",
    "i8_deconv2d",
    dtype="i8,u8",
    accepts_pitch=True,
    accepts_halo=True,
    when=all_of(within_frames, depth_ends, INTEGER_GEMM, stride_limit),
    why=tr("one integer stride-1 GEMM over taps per remainder of the stride"),
)

qlinear_conv_transpose.kernel(
    "cpu", "i16_conv", dtype="i16", accepts_pitch=True, accepts_halo=True,
    when=all_of(*_SIXTEEN, stride_limit),
    why=tr("16-bit convolution over taps"),
)  # fmt: skip

qlinear_conv_transpose.kernel(
    "opencl", "i8_deconv2d", dtype="i8,u8", when=all_of(rank(3, 4), INTEGER_GEMM),
    why=tr("one integer output a work-item"),
)  # fmt: skip

conv_integer = define_op(
    "ConvInteger", inputs="x w x_zero_point? w_zero_point?", attrs=WINDOW, layout="channels_last",
    source="ONNX ConvInteger-10", tolerance=0,
)  # fmt: skip


@conv_integer.infer
def _(
    x: TypeInfo, w: TypeInfo, x_zero: TypeInfo | None, w_zero: TypeInfo | None, **attrs: Any
) -> TypeInfo:
    return TypeInfo(DType.I32, _conv_shape(x, w, attrs).shape)


@conv_integer.reference
def _(x: Array, w: Array, x_zero: Array | None, w_zero: Array | None, **attrs: Any) -> Array:
    """Σ (x − x_zp)·(w − w_zp) as int32"""
    return integer_conv(x, x_zero, w, w_zero, attrs).astype(np.int32)


@conv_integer.cost
def _(x: TypeInfo, w: TypeInfo, *_: Any, **attrs: Any) -> Cost:
    return _conv_cost(x, w, attrs)


def _quantized(draw: Draw, x: Array, w: Array, out: int, per_channel: bool) -> list[Array]:
    """The inputs of a quantized convolution up to its bias."""
    f32 = np.float32
    w_scale = np.abs(draw.f32(out, scale=0.02)) + f32(0.001) if per_channel else f32(0.02)
    w_zero = np.zeros(out, np.int8) if per_channel else np.array(0, np.int8)
    accumulated = 40 * float(np.prod(w.shape[1:])) ** 0.5
    return [
        x, draw.scalar(0.03, f32), draw.zero_point(4), w, np.asarray(w_scale), w_zero,
        draw.scalar(0.0006 * accumulated, f32), draw.zero_point(5),
        draw.ints(-900, 900, out, dtype=np.int32),
    ]  # fmt: skip


@qlinear_conv.samples
def _(draw: Draw) -> Iterator[Sample]:
    same: dict[str, Any] = {"pads": [1, 1, 1, 1]}
    calls: tuple[tuple[int, int, int, dict[str, Any]], ...] = (
        (3, 15, 3, same), (4, 16, 3, same), (5, 17, 1, {}), (70, 33, 1, {}),
        (16, 32, 3, {**same, "strides": [2, 2]}), (9, 9, 3, {**same, "group": 9}),
        (16, 16, 3, {**same, "group": 16}),
        (35, 35, 5, {"pads": [2, 2, 2, 2], "group": 35, "strides": [2, 2]}),
        (6, 9, 3, {"group": 3}), (4, 8, 3, {"dilations": [2, 2], "pads": [2, 2, 2, 2]}),
    )  # fmt: skip
    for c, o, k, attrs in calls:
        for per_channel in (False, True):
            w = draw.ints(-128, 128, o, c // attrs.get("group", 1), k, k, dtype=np.int8)
            given = _quantized(draw, draw.full(1, c, 9, 8), w, o, per_channel)
            yield Sample(given, attrs, constant=tuple(range(1, 9)))
    w = draw.ints(-128, 128, 33, 40, 1, 1, dtype=np.int8) * (draw.ints(0, 9, 33, 40, 1, 1) == 0)
    given = _quantized(draw, draw.full(1, 40, 9, 8), w.astype(np.int8), 33, True)
    yield Sample(given, {}, constant=tuple(range(1, 9)))
    if draw.dtype is DType.I16:
        return
    w = draw.ints(-128, 128, 16, 16, 3, 3, dtype=np.int8)
    given = _quantized(draw, draw.full(1, 16, 5, 6), w, 16, True)
    residual = [draw.full(1, 16, 5, 6), draw.scalar(0.05, np.float32), draw.scalar(2)]
    sums = [draw.scalar(0.1, np.float32), draw.scalar(1)]
    constant = (*range(1, 9), 10, 11, 12, 13)
    yield Sample([*given, *residual], same, constant=constant[:-2])
    yield Sample([*given, *residual, *sums], same, constant=constant)


@qlinear_conv_transpose.samples
def _(draw: Draw) -> Iterator[Sample]:
    for c, o, k, s in ((5, 3, 2, 2), (16, 17, 3, 2), (33, 16, 3, 1)):
        w = draw.ints(-128, 128, c, o, k, k, dtype=np.int8)
        given = _quantized(draw, draw.full(1, c, 4, 5), w, o, s == 2)
        yield Sample(given, {"strides": [s, s]}, constant=tuple(range(1, 9)))
    w = draw.ints(-128, 128, 5, 7, 1, 3, 3, dtype=np.int8)
    given = _quantized(draw, draw.full(2, 5, 3, 4, 5), w, 7, True)
    frames: dict[str, Any] = {"strides": [1, 2, 2], "pads": [0, 1, 1, 0, 0, 1]}
    yield Sample(given, frames, constant=tuple(range(1, 9)))
