"""Conv: the sliding dot product, with fused bias, residual and activation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import Node, TypeInfo
from ._conditions import Condition, all_of, constant, rank, within_frames
from ._conv_window import WINDOW, conv_window
from ._core import define_op
from ._helpers import wide, window_output
from ._records import Cost
from ._samples import Draw, Sample
from ._sparse import SKIPS_ZEROS, SPARSE_FORMS, mostly_zeros, pointwise
from .activation import FUSED, apply_activation

conv = define_op(
    "Conv",
    weights={1: 0},
    integer_form="conv",
    quantized="weights",
    inputs="x w b? residual?",
    attrs={**WINDOW, **FUSED},
    layout="channels_last",
    source="ONNX Conv-22; residual and activation are ours",
)


@conv.infer
def _(
    x: TypeInfo, w: TypeInfo, b: TypeInfo | None, residual: TypeInfo | None, **attrs: Any
) -> TypeInfo:
    if x.rank < 3 or x.rank != w.rank:
        raise ShapeError(
            tr(
                "input and weight must have the same rank of at least 3, found {rank} "
                "and {weight_rank}",
                rank=x.rank,
                weight_rank=w.rank,
            )
        )
    channels, group = x.dims[1], attrs["group"]
    out_channels, in_group = w.dims[0], w.dims[1]
    if isinstance(channels, int) and isinstance(in_group, int) and channels != group * in_group:
        raise ShapeError(
            tr(
                "the input has {channels} channels, but the weight takes {group} groups"
                " of {in_group}",
                channels=channels,
                group=group,
                in_group=in_group,
            )
        )
    if isinstance(out_channels, int) and (group <= 0 or out_channels % group):
        raise ShapeError(
            tr(
                "{out_channels} output channels do not split into {group} groups",
                out_channels=out_channels,
                group=group,
            )
        )
    if any(not isinstance(d, int) for d in w.dims[2:]):
        return x.with_shape((x.dims[0], out_channels, *[None] * (x.rank - 2)))
    kernel, strides, pads, dilations = conv_window(x, w, attrs)
    n = len(kernel)
    spatial = [
        window_output(x.dims[2 + i], kernel[i], strides[i], pads[i] + pads[n + i], dilations[i])
        for i in range(n)
    ]
    out = x.with_shape((x.dims[0], out_channels, *spatial))
    if residual is not None and residual.is_static and out.is_static and residual.dims != out.dims:
        raise ShapeError(
            tr(
                "the residual has shape {residual}, but the output {out}",
                residual=residual,
                out=out,
            )
        )
    return out


@conv.reference
def _(
    x: np.ndarray,
    w: np.ndarray,
    b: np.ndarray | None,
    residual: np.ndarray | None,
    **attrs: Any,
) -> np.ndarray:
    """N-D cross-correlation. x (N,C,*S), w (O,C/g,*K), b (O,), residual like y → (N,O,*S')."""
    y = correlate(x, w, attrs)
    if b is not None:
        y = y + b.reshape(1, -1, *[1] * (x.ndim - 2))
    if residual is not None:
        y = y + residual
    return apply_activation(attrs["activation"], attrs["activation_params"], y).astype(x.dtype)


def correlate(x: np.ndarray, w: np.ndarray, attrs: dict[str, Any]) -> np.ndarray:
    """Grouped cross-correlation as one matrix product per kernel tap."""
    kernel, strides, pads, dilations = conv_window(x, w, attrs)
    n, group = len(kernel), attrs["group"]
    padded = np.pad(x, [(0, 0), (0, 0), *[(pads[i], pads[n + i]) for i in range(n)]])
    out = [
        (padded.shape[2 + i] - dilations[i] * (kernel[i] - 1) - 1) // strides[i] + 1
        for i in range(n)
    ]
    batch, positions = x.shape[0], math.prod(out)
    padded, w = wide(padded), wide(w)
    wg = w.reshape(group, w.shape[0] // group, w.shape[1], *kernel)
    y = np.zeros((batch, group, wg.shape[1], positions), np.result_type(padded, w))
    for tap in np.ndindex(*kernel):
        window = tuple(
            slice(t * d, t * d + (o - 1) * s + 1, s)
            for t, d, o, s in zip(tap, dilations, out, strides)
        )
        part = padded[(slice(None), slice(None), *window)]
        part = part.reshape(batch, group, w.shape[1], positions)
        if w.shape[1] == 1 and wg.shape[1] == 1:
            y += wg[(slice(None), slice(None), 0, *tap)][None, :, :, None] * part
        else:
            y += np.matmul(wg[(slice(None),) * 3 + tap], part)
    return y.reshape(batch, w.shape[0], *out)


@conv.cost
def _(
    x: TypeInfo, w: TypeInfo, b: TypeInfo | None, residual: TypeInfo | None, **attrs: Any
) -> Cost:
    kernel, strides, pads, dilations = conv_window(x, w, attrs)
    n = len(kernel)
    positions = math.prod(
        int(
            window_output(x.dims[2 + i], kernel[i], strides[i], pads[i] + pads[n + i], dilations[i])
            or 0
        )
        for i in range(n)
    )
    outputs = int(x.dims[0] or 0) * positions * int(w.dims[0] or 0)  # type: ignore[call-overload]
    per_output = math.prod(int(d or 0) for d in w.dims[1:])  # type: ignore[call-overload, misc]
    extra = (b is not None) + (residual is not None) + bool(attrs["activation"])
    return Cost(macs=outputs * per_output, flops=outputs * extra)


_frames = all_of(within_frames, constant(1, 2))


def _depthwise(node: Node, types: list[TypeInfo | None]) -> bool | str:
    ok = _frames(node, types)
    x, w = types[0], types[1]
    if ok is not True or x is None or w is None:
        return ok
    if not (node.attrs.get("group", 1) == x.dims[1] == w.dims[0] and w.dims[1] == 1):
        return tr("not depthwise")
    return True


def _square(size: int, steps: Callable[[list[int], list[int]], bool], why: str) -> Condition:
    """Kernels of `size` x `size` in one group, whose strides and dilations are among `steps`."""

    def when(node: Node, types: list[TypeInfo | None]) -> bool | str:
        ok = _frames(node, types)
        x, w = types[0], types[1]
        if ok is not True or x is None or w is None:
            return ok
        attrs = conv.filled_attrs(node)
        kernel, strides, _, dilations = conv_window(x, w, attrs)
        if x.rank < 4 or kernel[-2:] != [size, size] or not steps(strides[-2:], dilations[-2:]):
            return why
        if attrs["group"] != 1 or int(x.dims[1] or 0) < 16:  # type: ignore[call-overload]
            return tr("fewer than 16 input channels, or grouped")
        return True

    return when


_3x3 = _square(
    3,
    lambda strides, dilations: strides == [1, 1] or (strides == [2, 2] and dilations == [1, 1]),
    tr("not 3x3 with stride 1 or 2"),
)
_5x5 = _square(
    5, lambda strides, dilations: strides == dilations == [1, 1], tr("not 5x5 with stride 1")
)


def _winograd(node: Node, types: list[TypeInfo | None]) -> bool | str:
    ok = _3x3(node, types)
    apart = {*(node.attrs.get("strides") or ()), *(node.attrs.get("dilations") or ())} - {1}
    return tr("not 3x3 with stride 1") if ok is True and apart else ok


def _winograd43(node: Node, types: list[TypeInfo | None]) -> bool | str:
    ok = _winograd(node, types)
    x = types[0]
    if ok is not True or x is None:
        return ok
    return min(int(d or 0) for d in x.dims[-2:]) > 8 or tr(
        "its feature map has 8 or fewer rows or columns"
    )  # type: ignore[call-overload, misc]


def _half_width(node: Node, types: list[TypeInfo | None]) -> bool | str:
    if _depthwise(node, types) is True:
        return tr("depthwise: limited by memory")
    if _winograd43(node, types) is True:
        return tr("3x3 has a kernel of its own")
    return _frames(node, types)


#: On the CPU, best first: name, rank, which convolutions, why. A name begins with what the kernel
#: computes in and holds values in; `_MIXED` take float32 as well, `_WHOLE` only whole images.
_CPU = (
    (
        "f16_conv2d_winograd23",
        -2,
        _winograd,
        tr("3x3 stride 1: F(2,3) needs 2.25x fewer multiplications; fp16 is too short for F(4,3)"),
    ),
    (
        "f16_conv2d_depthwise",
        -2,
        _depthwise,
        tr("one filter per channel, eight channels per register"),
    ),
    (
        "bf16_conv2d_3x3",
        -2,
        _winograd43,
        tr("3x3 stride 1: bf16 on matrix units (AMX), elsewhere the faster of bf16 and F(4,3)"),
    ),
    (
        "bf16_conv2d_gemm",
        -1,
        _half_width,
        tr("bf16 products, float32 sums: two multiplications per lane"),
    ),
    (
        "f16_conv2d_gemm",
        -1,
        _frames,
        tr("fp16 in memory and in products: eight columns per register"),
    ),
    ("f32_conv2d_depthwise", 0, _depthwise, tr("one filter per channel")),
    ("bf16_conv2d_depthwise", 0, _depthwise, tr("one filter per channel")),
    (
        "f32_conv2d_3x3",
        1,
        _3x3,
        tr("3x3: F(4,3) needs 4x fewer multiplications; other forms on small maps and at stride 2"),
    ),
    (
        "f32_conv2d_5x5",
        1,
        _5x5,
        tr("5x5 stride 1: F(2,5) by F(4,5) needs 4.2x fewer multiplications"),
    ),
    (
        "f32_conv2d_winograd43",
        2,
        _winograd43,
        tr("3x3 stride 1: F(4,3) needs 4x fewer multiplications"),
    ),
    (
        "f32_conv2d_winograd23",
        3,
        _winograd,
        tr("3x3 stride 1 on a small map: F(2,3) keeps the weights small"),
    ),
    ("f32_conv2d_gemm", 4, _frames, tr("general convolution as GEMM over taps")),
    (
        "f32_conv2d_bf16x2",
        9,
        _frames,
        tr(
            "as requested: each float is split into two bf16 values for matrix units (AMX), "
            "which keep 16 of its 24 bits"
        ),
    ),
)
_MIXED = ("bf16_conv2d_gemm", "bf16_conv2d_3x3")
_WHOLE = ("f32_conv2d_winograd43", "f32_conv2d_winograd23", "f32_conv2d_bf16x2")
for _name, _rank, _when, _why in _CPU:
    _number = _name.partition("_")[0]
    conv.kernel(
        "cpu",
        _name,
        dtype=f"f32,{_number}" if _name in _MIXED else _number,
        mixed="x residual" if _name in _MIXED else None,
        accepts_pitch=True,
        accepts_halo=True,
        by_rows=_name not in _WHOLE,
        when=_when,
        rank=_rank,
        why=_why,
        precision="" if _number == "f32" else _number,
    )

for _most, _rank in SPARSE_FORMS:
    conv.kernel(
        "cpu", "f32_conv_sparse", accepts_pitch=True, rank=_rank,
        when=all_of(_frames, pointwise, mostly_zeros(1, _most)), why=SKIPS_ZEROS,
    )  # fmt: skip


def _device_conv(node: Node, types: list[TypeInfo | None]) -> bool | str:
    ok = all_of(rank(3, 4), constant(1, 2))(node, types)
    bias = types[2] if len(types) > 2 else None
    if ok is not True:
        return ok
    return bias is None or bias.is_const or tr("the bias is not constant")


def _one_group(node: Node, types: list[TypeInfo | None]) -> bool | str:
    ok = _device_conv(node, types)
    return ok if ok is not True else node.attrs.get("group", 1) == 1 or "grouped"


def _device_depthwise(node: Node, types: list[TypeInfo | None]) -> bool | str:
    ok = _device_conv(node, types)
    return ok if ok is not True else _depthwise(node, types)


_BOTH = "f32,f16"
conv.kernel(
    "opencl",
    "conv2d_depthwise",
    dtype=_BOTH,
    accepts_pitch=True,
    when=_device_depthwise,
    rank=0,
    why=tr("one filter per channel"),
)
conv.kernel(
    "opencl",
    "conv2d",
    dtype=_BOTH,
    accepts_pitch=True,
    when=_one_group,
    rank=3,
    why=tr("implicit GEMM in registers"),
)
conv.kernel(
    "opencl",
    "conv2d_grouped",
    dtype=_BOTH,
    when=_device_conv,
    rank=4,
    why=tr("each group on its own"),
)


@conv.samples
def _(draw: Draw) -> Iterator[Sample]:
    """Channels below, at and above tiles; depthwise, grouped, strided, dilated, 1-D; a residual."""

    def call(shape: tuple[int, ...], out: int, *kernel: int, **attrs: Any) -> Sample:
        w = draw.weights(out, shape[1] // attrs.get("group", 1), *kernel)
        return Sample([draw(*shape), w, draw.f32(out)], attrs, constant=(1, 2))

    same = {"pads": [1, 1, 1, 1]}
    for c, o in ((3, 15), (4, 16), (5, 17), (16, 20), (33, 48)):
        yield call((1, c, 11, 10), o, 3, 3, **same, activation="Relu")
    for c, o in ((8, 31), (5, 33), (16, 32)):
        yield call((1, c, 9, 11), o, 1, 1)
    for c, s in ((3, 1), (4, 2), (9, 1), (16, 1), (18, 1)):
        yield call((1, c, 6, 7), c, 3, 3, **same, group=c, strides=[s, s])
    yield call((2, 8, 9, 7), 8, 5, 5, group=8, dilations=[1, 2], pads=[2, 4, 2, 4])
    yield call((2, 5, 9, 6), 7, 3, 3, strides=[2, 1], dilations=[2, 1], **same)
    yield call((2, 18, 9, 9), 17, 3, 3, strides=[2, 2], **same)
    yield call((2, 6, 7, 8), 17, 1, 1, strides=[2, 2])
    yield call((1, 3, 9), 5, 3, pads=[1, 1])
    yield call((1, 4, 6, 6), 3, 5, 5, pads=[0, 1, 2, 3])
    yield call((1, 19, 9, 10), 17, 5, 5, pads=[2, 2, 2, 1], activation="Relu")
    yield call((1, 6, 5, 5), 9, 3, 3, group=3)
    yield call((1, 4, 5, 5), 8, 3, 3, group=4, **same, activation="HardSwish")
    frames = {"pads": [0, 1, 1, 0, 1, 1]}
    yield call((2, 18, 3, 9, 10), 17, 1, 3, 3, **frames, activation="Relu")
    yield call((1, 16, 2, 6, 7), 16, 1, 3, 3, **frames, group=16, strides=[1, 2, 2])
    yield call((1, 9, 3, 4, 5), 7, 1, 1, 1)
    x, w = draw(1, 16, 7, 6), draw.weights(16, 16, 3, 3)
    attrs = {**same, "activation": "Clip", "activation_params": [-0.5, 6.0]}
    yield Sample([x, w, draw.f32(16), draw(1, 16, 7, 6)], attrs, constant=(1, 2))
    for c, o, h in ((40, 33, 4), (48, 64, 9)):
        few = draw.weights(o, c, 1, 1) * (draw.ints(0, 5, o, c, 1, 1) == 0)
        inputs = [draw(1, c, h, 7), few.astype(np.float32), draw.f32(o), draw(1, o, h, 7)]
        yield Sample(inputs[:3], {"activation": "Gelu"}, constant=(1, 2))
        yield Sample(inputs, {"activation": "Relu"}, constant=(1, 2))
    yield Sample([x, w], {"auto_pad": "SAME_LOWER", "strides": [2, 2]}, constant=(1,))
