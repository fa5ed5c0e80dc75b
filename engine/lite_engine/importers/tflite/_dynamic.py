"""Layers of dynamic-range models as LiteRT runs them: bytes made of each input's own range.

Which of LiteRT's kernels takes a layer decides how it rounds (ops/dynamic_quantize.py): XNNPACK's
take dense layers and convolutions, 1x1 ones as dense layers of each pixel; LiteRT's own take
depthwise convolutions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...ir import DType, Value
from .. import _nhwc
from ._call import Call


def takes(c: Call) -> bool:
    """Whether an operator's weights are constants of int8 around 0, and all else is float."""
    weight = c.tensor(1)
    quant = weight.quant
    return (
        c.tensors.dynamic
        and quant is not None and weight.dtype is DType.I8 and weight.type_name != "int4"
        and not quant.zero_point.any() and bool((quant.scale > 0).all())
        and c.raw(1).const is not None
        and c.tensor(0).dtype is DType.F32 and c.output().dtype is DType.F32
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
        scale_per="pixel" if as_dense else "image", ties="even" if group == 1 else "away", **window,
    )  # fmt: skip


def dense(c: Call, x: Value) -> Value:
    """x (…,K) → (…,N)"""
    w, scale = _weight(c, (0, 1))
    return c.emit("DynamicQuantizeGemm", x, w, scale, c.bias(2))
