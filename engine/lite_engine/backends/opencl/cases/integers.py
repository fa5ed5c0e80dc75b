"""Layers of 8-bit integers: channels below, at and above a word and a vector, both types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....ir import DType, Graph
from ....ops.litert import LITERT
from .graphs import Sketch, typed

_IMAGE = (1, 6, 5, 7)
_RNG = np.random.default_rng(12)
_I8, _U8 = DType.I8, DType.U8


def _scaled(dtype: DType, scale: float, zero: int) -> list[np.ndarray]:
    return [np.array(scale, np.float32), np.array(zero, dtype.np)]


def _weight(*shape: int, dtype: DType = _I8) -> np.ndarray:
    low = np.iinfo(dtype.np).min
    return _RNG.integers(low, low + 256, shape).astype(dtype.np)


def _operands(
    dtype: DType, w: np.ndarray, count: int, per_channel: bool, depth: int
) -> list[np.ndarray]:
    """What stands between the first input and the bias."""
    scale, zero = np.array(0.01, np.float32), np.array(3 if w.dtype == np.uint8 else 0, w.dtype)
    if per_channel:
        scale = (_RNG.random(count) * 0.01 + 0.005).astype(np.float32)
        zero = np.zeros(count, w.dtype)
    wide = 0.03 * depth**0.5
    return [*_scaled(dtype, 0.05, 4), w, scale, zero, *_scaled(dtype, wide, 5)]


def conv(
    shape: Sequence[int], outputs: int, kernel: int, group: int = 1, *, dtype: DType = _U8,
    weights: DType = _I8, added: int = 0, **attrs: Any,
) -> Graph:  # fmt: skip
    """Padded to the same size; `added` 1 for a residual, 2 for one of a rounded sum."""
    size = [kernel] * (len(shape) - 2)
    w = _weight(outputs, shape[1] // group, *size, dtype=weights)
    depth = w.size // outputs
    bias = _RNG.integers(-900, 900, outputs).astype(np.int32)
    b = Sketch(shape, dtype)
    inputs: list[Any] = [b.x, *_operands(dtype, w, outputs, weights is _I8, depth), bias]
    if added:
        inputs += [b.x, *_scaled(dtype, 0.07, 2), *(_scaled(dtype, 0.09, 1) if added > 1 else [])]
    attrs = {"pads": [kernel // 2] * 2 * len(size), **attrs}
    return b.done(b.layer("QLinearConv", *inputs, group=group, **attrs))


def _deconv(outputs: int, kernel: int, stride: int, group: int = 1) -> Graph:
    w = _weight(4, outputs // group, kernel, kernel)
    operands = _operands(_U8, w, outputs, group == 1, 4 * kernel)
    bias = _RNG.integers(-900, 900, outputs).astype(np.int32)
    return typed(
        "QLinearConvTranspose", _U8, (1, 4, 4, 3), *operands, bias,
        strides=[stride, stride], group=group,
    )  # fmt: skip


def _product(op: str, m: int, k: int, n: int, dtype: DType = _U8, weights: DType = _I8) -> Graph:
    operands = _operands(dtype, _weight(k, n, dtype=weights), n, weights is _I8, k)
    if op == "QGemm":
        operands[5:5] = [_RNG.integers(-900, 900, n).astype(np.int32)]
    return typed(op, dtype, (m, k), *operands)


def _one(op: str, dtype: DType, shape: Sequence[int], **attrs: Any) -> Graph:
    return typed(
        op, dtype, shape, *_scaled(dtype, 0.03, 4), *_scaled(dtype, 0.02, 5), **attrs
    )  # fmt: skip


def _binary(op: str, dtype: DType, a: Sequence[int], b: Sequence[int], **attrs: Any) -> Graph:
    other = [_weight(*b, dtype=dtype), *_scaled(dtype, 0.07, 1)]
    return typed(op, dtype, a, *_scaled(dtype, 0.03, 4), *other, *_scaled(dtype, 0.11, 5), **attrs)


def _looked_up(dtype: DType) -> Graph:
    """More than the run of an item, and no whole number of registers."""
    table = np.random.default_rng(5).permutation(256).astype(np.uint8).view(dtype.np)
    return typed("QLookup", dtype, (5, 901), table=table.tolist())


def _concat(dtype: DType, axis: int) -> Graph:
    b = Sketch(_IMAGE, dtype)
    table = list(range(100)) * 2 + list(range(56))
    other = b.add("QLookup", b.x, table=table)
    parts = [b.x, *_scaled(dtype, 0.04, 3), other, *_scaled(dtype, 0.06, 2)]
    return b.done(b.layer("QLinearConcat", *_scaled(dtype, 0.05, 1), *parts, axis=axis))


def _quantized(dtype: DType, entries: int = 0, **attrs: Any) -> Graph:
    scale, zero = np.array(0.02, np.float32), np.array(3, dtype.np)
    if entries:
        scale = (_RNG.random(entries) * 0.02 + 0.01).astype(np.float32)
        zero = np.arange(entries).astype(dtype.np)
    return typed("QuantizeLinear", DType.F32, _IMAGE, scale, zero, **attrs)


def _dequantized(dtype: DType, entries: int = 0) -> Graph:
    scale = np.full(entries, 0.02, np.float32) if entries else np.array(0.02, np.float32)
    zero = np.zeros(entries, dtype.np) if entries else np.array(0, dtype.np)
    return typed("DequantizeLinear", dtype, _IMAGE, scale, zero)


def integers() -> dict[str, list[Graph]]:
    """By kernel."""
    window = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    return {
        "quantize": [_quantized(t) for t in (_I8, _U8, DType.I16, DType.U16)]
        + [_quantized(_U8, 6), _quantized(_I8, rounding=LITERT)]
        + [_dequantized(t) for t in (_I8, DType.I32, DType.I16, DType.U16)]
        + [_dequantized(_U8, 6)],
        "i8_conv2d": [
            conv((1, c, 9, 7), o, k, dtype=t, weights=w)
            for c, o, k, t, w in (
                (3, 15, 3, _U8, _I8), (4, 16, 3, _I8, _I8), (5, 17, 1, _U8, _U8),
                (16, 33, 1, _I8, _I8), (20, 20, 3, _U8, _U8), (32, 9, 3, _I8, _U8),
            )
        ]
        + [
            conv((2, 16, 9, 7), 20, 3, strides=[2, 1], dilations=[2, 1]),
            conv((1, 8, 9), 5, 3), conv((1, 16, 6, 6), 16, 3, added=1),
            conv((1, 16, 6, 6), 16, 1, added=2, dtype=_I8),
        ],
        "i8_conv2d_depthwise": [
            conv((1, c, 6, 9), c, 3, c, strides=[s, s], dtype=t)
            for c, s, t in ((3, 1, _U8), (4, 2, _I8), (16, 1, _U8), (18, 1, _I8))
        ]
        + [conv((2, 8, 9, 7), 8, 5, 8, dilations=[1, 2], pads=[2, 4, 2, 4], weights=_U8)]
        + [conv((2, 8, 9, 7), 8, 5, 8, strides=[s, s], dtype=_I8) for s in (1, 2)]
        + [conv((1, 8, 6, 9), 8, 3, 8, weights=_U8), conv((1, 16, 6, 6), 16, 3, 16, added=1)],
        "i8_conv2d_grouped": [conv((1, 6, 5, 5), 9, 3, 3), conv((1, 4, 5, 5), 8, 3, 4, dtype=_I8)]
        + [conv((1, 6, 5, 5), 6, 3, 3, added=2)],
        "i8_deconv2d": [_deconv(3, 2, 2), _deconv(4, 3, 1), _deconv(4, 3, 2, group=2)],
        "i8_gemm": [_product("QGemm", m, k, n) for m, k, n in ((1, 9, 15), (7, 32, 16), (9, 33, 8))]
        + [_product("QLinearMatMul", 5, 12, 20, _I8), _product("QGemm", 9, 16, 33, _U8, _U8)],
        "i8_binary": [
            _binary("QLinearAdd", _U8, _IMAGE, (6, 1, 1)),
            _binary("QLinearMul", _I8, _IMAGE, _IMAGE),
            _binary("QLinearAdd", _I8, (2, 5, 16), (16,)),
            _binary("QLinearMul", _U8, (3, 1, 5), (4, 1)),
            _binary("QLinearSub", _I8, _IMAGE, (6, 1, 1), rounding=LITERT),
            _binary("QLinearMul", _U8, (2, 5, 16), (16,), rounding=LITERT),
        ],
        "i8_table": [_looked_up(_U8), _looked_up(_I8)]
        + [_one("QLinearSigmoid", _I8, (5, 7)), _one("QLinearLeakyRelu", _U8, (40,), alpha=0.1)],
        "i8_softmax": [_one("QLinearSoftmax", _U8, (3, 10)), _one("QLinearSoftmax", _I8, (2, 300))]
        + [_one("QLinearSoftmax", _I8, (2, 5, 7), axis=1)],
        "i8_pool": [
            typed("MaxPool", _U8, _IMAGE, **window), typed("MaxPool", _I8, (1, 16, 5, 7), **window),
            typed("GlobalMaxPool", _I8, _IMAGE), _one("QLinearGlobalAveragePool", _U8, _IMAGE),
            _one("QLinearGlobalAveragePool", _I8, (2, 72, 5, 7)),
            _one("QLinearGlobalAveragePool", _I8, (2, 72, 5, 7), rounding=LITERT),
            _one("QLinearGlobalAveragePool", _U8, (1, 16, 5, 7), rounding=LITERT),
            _one("QLinearAveragePool", _I8, _IMAGE, **window),
            _one("QLinearAveragePool", _U8, (1, 16, 5, 7), count_include_pad=1, **window),
            _one("QLinearAveragePool", _I8, (1, 16, 5, 7), rounding=LITERT, **window),
        ],
        "i8_resize": [
            typed("Resize", t, shape, None, np.array([1, 1, 2, 3], np.float32), mode="nearest")
            for t, shape in ((_U8, _IMAGE), (_I8, (1, 16, 3, 4)))
        ],
        "i8_concat": [_concat(_U8, 1), _concat(_I8, 2)],
    }  # fmt: skip


def large_integers() -> dict[str, list[Graph]]:
    """By kernel: layers that fill every tile, aligned and not."""
    return {
        "i8_conv2d": [
            conv((1, c, 24, 24), o, k, dtype=t, weights=w, added=a)
            for k in (1, 3)
            for c, o, t, w, a in (
                (64, 128, _U8, _I8, 0), (36, 130, _I8, _U8, 0), (33, 129, _U8, _I8, 0),
                (64, 64, _I8, _I8, 1),
            )
        ],
        "i8_gemm": [_product("QGemm", 200, c, n) for c, n in ((64, 128), (36, 130), (33, 129))],
        "i8_conv2d_depthwise": [conv((1, 64, 24, 24), 64, 3, 64)],
    }  # fmt: skip
