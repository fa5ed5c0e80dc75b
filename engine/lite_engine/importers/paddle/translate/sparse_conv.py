"""Paddle-Lite's sparse_conv2d: a 1x1 convolution whose file has only the weights that are not 0.

What the three tensors hold, model_file/naive_buffer/sparse.py says, which writes them.
"""

from __future__ import annotations

import numpy as np
from lite_messages import tr

from ....ir import DType, Value
from ..registry import Call
from .lite_int8 import dequantise, scales_of

_FOUR = 4


def dense_filter(op: Call, x: Value) -> Value:
    """The weight (outputs, inputs, 1, 1). Raises UnsupportedOperatorError for an input of unknown
    size, or tensors that do not describe a weight for it."""
    values, ends, diffs = (_constant(op, s) for s in ("NonZeroWeights", "OcNonZeros", "Diffs"))
    sizes = [op.size(x, axis) for axis in (1, 2, 3)] if op.rank(x) == 4 else [None]
    if None in sizes:
        raise op.unsupported(
            tr("the size of its input {x} is not known; import with shapes=…", x=x.name)
        )
    channels, height, width = (int(s or 0) for s in sizes)
    unit = values.itemsize * height * width
    if not unit or (diffs % unit).any():
        raise op.unsupported(
            tr("its weights were written for inputs of another size than {height}x{width}",
               height=height, width=width)
        )  # fmt: skip
    paired = bool(op.attr("flag_semi", 0))
    weight = np.zeros((len(ends), channels), values.dtype)
    step = 1 if paired or values.dtype != np.float32 else _FOUR
    damaged = op.unsupported(tr("its sparse weights do not fit {n} inputs", n=channels))
    row = entry = end = 0
    while row < len(ends):
        many = 2 if paired and row + 1 < len(ends) else 1
        number = (row + 1) // 2 if paired else row
        begin = -(-end // step) * step
        at = int(op.attr("first_ic", 0)) + (int(diffs[end - 1]) // unit if end > 0 else 0)
        end = int(ends[number])
        count = end - begin
        if count < 0 or end > len(diffs) or entry + count * many > len(values):
            raise damaged
        inputs = at + np.concatenate([[0], np.cumsum(diffs[begin : max(end - 1, begin)] // unit)])
        inputs = inputs[:count]
        if count and not (inputs.min() >= 0 and inputs.max() < channels):
            raise damaged
        block = values[entry : entry + count * many].reshape(count, many)
        weight[row : row + many, inputs] = block.T
        entry += -(-count // step) * step * many
        row += many
    w = op.const(weight[:, :, None, None], DType.of(weight))
    scales = scales_of(op, "Filter") if values.dtype != np.float32 else []
    return dequantise(op, w, scales, 0) if scales else w


def _constant(op: Call, slot: str) -> np.ndarray:
    value = op.need(slot)
    if value.const is None:
        raise op.unsupported(tr("its input {slot!r} is missing", slot=slot))
    return value.const.reshape(-1)
