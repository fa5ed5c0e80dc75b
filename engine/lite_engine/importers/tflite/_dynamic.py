"""Layers of dynamic-range models as LiteRT runs them: bytes made of each input's own range.

Which of LiteRT's kernels takes a layer decides how it rounds (ops/dynamic_quantize.py): XNNPACK's
take dense layers and convolutions, grouped and transposed ones, too, and 1x1 ones as dense layers
of each pixel; LiteRT's own take depthwise convolutions and LSTMs (ops_recurrent.py).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...ir import DType, Value
from .. import _nhwc
from ._call import Call


def takes(c: Call, x: int = 0, weights: Sequence[int] = (1,)) -> bool:
    """Whether an operator's weights are constants of int8 around 0, and input `x` is float."""
    floats = c.tensor(x).dtype is DType.F32 and c.output().dtype is DType.F32
    return c.tensors.dynamic and floats and all(_is_stored(c, i) for i in weights)


def _is_stored(c: Call, index: int) -> bool:
    weight = c.tensor(index)
    quant = weight.quant
    return (
        quant is not None and weight.dtype is DType.I8 and weight.type_name != "int4"
        and not quant.zero_point.any() and bool((quant.scale > 0).all())
        and c.raw(index).const is not None
    )  # fmt: skip


def _weight(c: Call, perm: Sequence[int]) -> tuple[Value, np.ndarray]:
    params = c.tensors.params(c.index(1))
    return c.emit.transpose(c.raw(1), perm), np.ascontiguousarray(params.scale.ravel())


def convolution(
    c: Call, perm: Sequence[int], group: int, strides: Sequence[int], dilations: Sequence[int]
) -> Value:
    """x (N,H,W,C) → (N,O,H',W')"""
    w, scale = _weight(c, perm)
    first = _nhwc.to_first(c.emit, c.x(0))
    kernel = [int(d or 0) for d in c.emit.dims(w)[2:]]
    window = _nhwc.window(c.emit, first, kernel, strides, c.padding, dilations)
    as_dense = group == 1 and {*kernel, *strides} == {1}
    return c.emit(
        "DynamicQuantizeConv", first, w, scale, c.bias(2), kernel_shape=kernel, group=group,
        scale_per="pixel" if as_dense else "image",
        ties="away" if c.op.code == "DEPTHWISE_CONV_2D" else "even", **window,
    )  # fmt: skip


def transposed(c: Call, strides: tuple[int, int], size: Sequence[int | None]) -> Value | None:
    """x (N,H,W,C), w (O,kh,kw,C) → (N,O,*size); None where strides differ or a size is open.

    Row s·m + r of the result reads rows m, m − 1, … of x with taps r, r + s, … of the kernel: one
    convolution makes the s² phases side by side, and DepthToSpace puts them into place.
    """
    have, (s, other) = c.emit.dims(c.raw(2))[1:3], strides
    stored = c.raw(1).const
    if s != other or None in (*have, *size) or stored is None or stored.ndim != 4:
        return None
    outputs, *kernel, depth = stored.shape
    taps = [-(-k // s) for k in kernel]
    w = np.zeros((outputs, taps[0] * s, taps[1] * s, depth), np.int8)
    w[:, : kernel[0], : kernel[1]] = stored
    phases = w.reshape(outputs, taps[0], s, taps[1], s, depth)[:, ::-1, :, ::-1]
    w = phases.transpose(2, 4, 0, 5, 1, 3).reshape(s * s * outputs, depth, *taps)

    before, pads = [], []
    for h, want, k, t in zip(have, size, kernel, taps):
        assert h is not None and want is not None
        before.append(max(0, (h - 1) * s + k - want) // 2)
        pads.append((t - 1, max(0, -(-(want + before[-1]) // s) - h)))
    params = c.tensors.params(c.index(1))
    scale = params.scale.ravel()
    b = c.bias(3, 2, 1)
    y = c.emit(
        "DynamicQuantizeConv", _nhwc.to_first(c.emit, c.x(2)), np.ascontiguousarray(w),
        np.tile(scale, s * s) if len(scale) > 1 else scale,
        b if b is None or s == 1 else c.emit("Concat", *[b] * (s * s), axis=0),
        kernel_shape=taps, pads=[p[0] for p in pads] + [p[1] for p in pads],
    )  # fmt: skip
    if s > 1:
        y = c.emit("DepthToSpace", y, blocksize=s, mode="DCR")
    made = c.emit.dims(y)[2:]
    if before != [0, 0] or made != list(size):
        ends = [p + (want or 0) for p, want in zip(before, size)]
        y = c.emit("Slice", y, before, ends, [2, 3])
    return y


def dense(c: Call, x: Value) -> Value:
    """x (…,K) → (…,N)"""
    w, scale = _weight(c, (0, 1))
    return c.emit("DynamicQuantizeGemm", x, w, scale, c.bias(2))
