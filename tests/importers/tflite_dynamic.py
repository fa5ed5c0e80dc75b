"""Layers of dynamic-range TFLite models on bytes, and what LiteRT answers.

python -m tests.importers.tflite_dynamic      records the answers anew (needs ai-edge-litert)
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from tests.importers.litert_answers import Made, read, record
from tests.importers.tiny_tflite import TinyModel
from tests.importers.wire import Num, Table

RECORDED = Path(__file__).with_name("tflite_dynamic.json")


def _layer(
    code: int, shape: tuple[int, ...], weights: tuple[int, ...], out: tuple[int, ...],
    options: Table, kind: int, axis: int | None = 0, bias: bool = True,
) -> Made:  # fmt: skip
    m, rng = TinyModel(), np.random.default_rng(code + len(weights) + shape[-1])
    channels = out[-1]
    scales = rng.uniform(0.001, 0.02, 1 if axis is None else channels).astype(np.float32)
    x = m.tensor("x", "float32", shape)
    numbers = rng.integers(-127, 128, weights)
    inputs = [x, m.tensor("w", "int8", weights, numbers, scale=scales, axis=axis or 0)]
    if bias:
        inputs.append(m.tensor("b", "float32", (channels,), rng.normal(0, 1, channels)))
    y = m.tensor("y", "float32", out)
    m.op(code, inputs, [y], options, kind=kind)
    return m.bytes([x], [y]), rng.normal(0.3, 1, shape).astype(np.float32)


def _dense(
    rows: tuple[int, ...], k: int, n: int, axis: int | None = 0, bias: bool = True, keep: int = 0
) -> Made:
    options = Table(_2=Num("?", keep), _3=Num("?", 1))
    return _layer(9, (*rows, k), (n, k), (*rows, n), options, 8, axis, bias)


def _conv(
    shape: tuple[int, ...], out: tuple[int, ...], size: int, stride: int = 1, valid: int = 0,
    dilation: int = 1, axis: int | None = 0,
) -> Made:  # fmt: skip
    options = Table(
        _0=Num("b", valid), _1=Num("i", stride), _2=Num("i", stride), _4=Num("i", dilation),
        _5=Num("i", dilation),
    )  # fmt: skip
    return _layer(3, shape, (out[-1], size, size, shape[-1]), out, options, 1, axis)


def _grouped(shape: tuple[int, ...], out: tuple[int, ...], size: int, groups: int) -> Made:
    options = Table(_1=Num("i", 1), _2=Num("i", 1), _4=Num("i", 1), _5=Num("i", 1))
    return _layer(3, shape, (out[-1], size, size, shape[-1] // groups), out, options, 1)


def _transposed(
    shape: tuple[int, ...], out: tuple[int, ...], size: int, stride: int, valid: int = 0,
    axis: int | None = 0, bias: bool = True,
) -> Made:  # fmt: skip
    m, rng = TinyModel(), np.random.default_rng(shape[-1] + size)
    channels, weights = out[-1], (out[-1], size, size, shape[-1])
    scales = rng.uniform(0.001, 0.02, 1 if axis is None else channels).astype(np.float32)
    target = m.tensor("s", "int32", (4,), out)
    w = m.tensor("w", "int8", weights, rng.integers(-127, 128, weights), scale=scales)
    x = m.tensor("x", "float32", shape)
    b = [m.tensor("b", "float32", (channels,), rng.normal(0, 1, channels))] if bias else []
    y = m.tensor("y", "float32", out)
    options = Table(_0=Num("b", valid), _1=Num("i", stride), _2=Num("i", stride))
    m.op(67, [target, w, x, *b], [y], options, kind=49)
    return m.bytes([x], [y]), rng.normal(0.3, 1, shape).astype(np.float32)


def _depthwise(
    shape: tuple[int, ...], out: tuple[int, ...], size: int, stride: int = 1, valid: int = 0
) -> Made:
    options = Table(
        _0=Num("b", valid), _1=Num("i", stride), _2=Num("i", stride),
        _3=Num("i", out[-1] // shape[-1]), _5=Num("i", 1), _6=Num("i", 1),
    )  # fmt: skip
    return _layer(4, shape, (1, size, size, out[-1]), out, options, 2, 3)


def _ties() -> Made:
    """A dense layer that hands its bytes on, and inputs half a step from a whole one."""
    m, k = TinyModel(), 16
    x = m.tensor("x", "float32", (32, k))
    w = m.tensor("w", "int8", (k, k), np.eye(k), scale=1.0)
    y = m.tensor("y", "float32", (32, k))
    m.op(9, [x, w], [y], Table(_3=Num("?", 1)), kind=8)
    array = np.zeros((32, k), np.float32)
    array[:, :2] = -128 / 16, 127 / 16
    array[:, 2:] = (np.arange(32 * 14).reshape(32, 14) / 2 - 112) / 16
    return m.bytes([x], [y]), array


def _grouped_ties() -> Made:
    """Two groups of channels that hand their bytes on."""
    m, c = TinyModel(), 64
    x = m.tensor("x", "float32", (1, 1, 7, c))
    ones = np.tile(np.eye(c // 2), (2, 1)).reshape(c, 1, 1, c // 2)
    w = m.tensor("w", "int8", ones.shape, ones, scale=np.ones(c))
    b = m.tensor("b", "float32", (c,), np.zeros(c))
    y = m.tensor("y", "float32", (1, 1, 7, c))
    options = Table(_1=Num("i", 1), _2=Num("i", 1), _4=Num("i", 1), _5=Num("i", 1))
    m.op(3, [x, w, b], [y], options, kind=1)
    array = (np.arange(7 * c).reshape(1, 1, 7, c) / 2 - 112) / 16
    array[0, 0, 0, :2] = -125 / 16, 130 / 16
    return m.bytes([x], [y]), array.astype(np.float32)


def _depthwise_ties() -> Made:
    m, c = TinyModel(), 64
    x = m.tensor("x", "float32", (1, 1, 7, c))
    w = m.tensor("w", "int8", (1, 1, 1, c), np.ones((1, 1, 1, c)), scale=np.ones(c), axis=3)
    b = m.tensor("b", "float32", (c,), np.zeros(c))
    y = m.tensor("y", "float32", (1, 1, 7, c))
    options = Table(_1=Num("i", 1), _2=Num("i", 1), _3=Num("i", 1), _5=Num("i", 1), _6=Num("i", 1))
    m.op(4, [x, w, b], [y], options, kind=2)
    array = (np.arange(7 * c).reshape(1, 1, 7, c) / 2 - 112) / 16
    array[0, 0, 0, :2] = -125 / 16, 130 / 16
    return m.bytes([x], [y]), array.astype(np.float32)


#: name → the model and its input
CASES: dict[str, Callable[[], Made]] = {
    "dense": lambda: _dense((5,), 33, 17),
    "dense, one scale": lambda: _dense((8,), 64, 40, None),
    "dense without bias": lambda: _dense((1,), 40, 16, bias=False),
    "dense of rank 3": lambda: _dense((2, 3), 24, 10, keep=1),
    "dense, ties": _ties,
    "convolution": lambda: _conv((2, 8, 8, 16), (2, 8, 8, 8), 3),
    "convolution, one scale": lambda: _conv((1, 7, 7, 5), (1, 7, 7, 9), 3, axis=None),
    "convolution of stride 2": lambda: _conv((2, 9, 9, 6), (2, 5, 5, 10), 3, 2),
    "convolution without padding": lambda: _conv((1, 9, 9, 3), (1, 5, 5, 40), 5, 1, 1),
    "convolution, dilated": lambda: _conv((1, 9, 9, 4), (1, 9, 9, 6), 3, dilation=2),
    "convolution 1x1": lambda: _conv((2, 5, 6, 10), (2, 5, 6, 35), 1),
    "convolution 1x1 of stride 2": lambda: _conv((1, 8, 8, 16), (1, 4, 4, 8), 1, 2),
    "grouped convolution": lambda: _grouped((2, 8, 8, 16), (2, 8, 8, 8), 3, 4),
    "grouped convolution 1x1": lambda: _grouped((1, 6, 6, 8), (1, 6, 6, 6), 1, 2),
    "grouped convolution, ties": _grouped_ties,
    "transposed convolution": lambda: _transposed((2, 5, 5, 16), (2, 10, 10, 8), 3, 2),
    "transposed convolution, 4x4": lambda: _transposed((1, 4, 4, 8), (1, 8, 8, 12), 4, 2),
    "transposed convolution, one scale": lambda: _transposed(
        (1, 5, 5, 8), (1, 10, 10, 8), 2, 2, axis=None
    ),
    "transposed convolution of stride 1": lambda: _transposed((1, 5, 5, 8), (1, 5, 5, 8), 3, 1),
    "transposed convolution of stride 3": lambda: _transposed((1, 4, 5, 6), (1, 12, 15, 5), 5, 3),
    "transposed convolution without padding": lambda: _transposed(
        (1, 5, 6, 7), (1, 11, 13, 5), 3, 2, 1, bias=False
    ),
    "depthwise": lambda: _depthwise((1, 8, 8, 16), (1, 8, 8, 16), 3),
    "depthwise, rest of channels": lambda: _depthwise((2, 9, 9, 6), (2, 5, 5, 6), 3, 2),
    "depthwise without padding": lambda: _depthwise((1, 9, 9, 11), (1, 5, 5, 11), 5, 1, 1),
    "depthwise, two of each": lambda: _depthwise((1, 6, 6, 5), (1, 6, 6, 10), 3),
    "depthwise, ties": _depthwise_ties,
}


def recorded() -> dict[str, np.ndarray]:
    return read(RECORDED, np.float32)


if __name__ == "__main__":
    record(RECORDED, CASES)
