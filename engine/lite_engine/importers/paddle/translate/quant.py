"""Quantization-aware training and quantised-export operators → QuantizeLinear/DequantizeLinear.

All of Paddle's are symmetric: q = round(x·bound / scale), bound = 2^(bits−1) − 1, so the step is
scale / bound and the zero point 0.
"""

from __future__ import annotations

import numpy as np
from lite_messages import tr

from ....ir import DType, Value
from ..registry import Call, translates


def _bound(op: Call) -> float:
    bits = int(op.attr("bit_length", 8))
    if bits != 8:
        raise op.unsupported(tr("{bits}-bit quantization is not supported, only 8-bit", bits=bits))
    return float(2 ** (bits - 1) - 1)


def _step(op: Call, scale: Value) -> np.ndarray:
    """The real value of one step, from a stored scale."""
    if scale.const is None:
        raise op.unsupported(tr("its scale {scale} is not stored in the file", scale=scale.name))
    return scale.const.reshape(-1).astype(np.float32) / np.float32(_bound(op))


def _axis(op: Call, step: np.ndarray) -> int | None:
    axis = int(op.attr("quant_axis", 0))
    return None if step.size == 1 else max(axis, 0)


def quantise(op: Call, x: Value, step: np.ndarray, axis: int | None) -> Value:
    scale = op.const(step.reshape(()) if step.size == 1 else step)
    zero = op.const(np.zeros(() if step.size == 1 else step.shape), DType.I8)
    return op.node("QuantizeLinear", [x, scale, zero], axis=axis)


def dequantise(op: Call, q: Value, step: np.ndarray, axis: int | None) -> Value:
    scale = op.const(step.reshape(()) if step.size == 1 else step)
    return op.node("DequantizeLinear", [q, scale], axis=axis)


@translates("fake_quantize_dequantize_moving_average_abs_max", "fake_quantize_dequantize_abs_max",
            "fake_channel_wise_quantize_dequantize_abs_max")  # fmt: skip
def _(op: Call) -> None:
    x = op.need("X")
    stored = op["InScale"]
    if stored is None and x.const is not None:  # a weight: its own maxima
        per_channel = op.type.startswith("fake_channel")
        axis = int(op.attr("quant_axis", 0))
        rest = tuple(a for a in range(x.const.ndim) if a != axis) if per_channel else None
        step = np.abs(x.const).max(axis=rest).reshape(-1).astype(np.float32) / np.float32(
            _bound(op)
        )
        step = np.maximum(step, np.float32(1e-12))
    else:
        step = _step(op, op.need("InScale"))
    axis_of = _axis(op, step)
    op.set("Out", dequantise(op, quantise(op, x, step, axis_of), step, axis_of))


@translates("fake_quantize_moving_average_abs_max", "fake_quantize_range_abs_max",
            "fake_quantize_abs_max", "fake_channel_wise_quantize_abs_max")  # fmt: skip
def _(op: Call) -> None:
    x = op.need("X")
    stored = op["InScale"]
    if stored is not None:
        step = _step(op, stored)
    elif x.const is not None:
        axis = int(op.attr("quant_axis", 0))
        rest = tuple(a for a in range(x.const.ndim) if a != axis) if "channel" in op.type else None
        step = np.abs(x.const).max(axis=rest).reshape(-1).astype(np.float32) / np.float32(
            _bound(op)
        )
    else:
        raise op.unsupported(tr("it has no stored scale"))
    op.set("Out", quantise(op, x, step, _axis(op, step)))
    op.set("OutScale", op.const(step * np.float32(_bound(op))))


@translates("fake_dequantize_max_abs", "dequantize_abs_max")
def _(op: Call) -> None:
    """x·scale / max_range"""
    x, scale = op.need("X"), op.need("Scale")
    if scale.const is None:
        raise op.unsupported(tr("its scale {scale} is not stored in the file", scale=scale.name))
    step = scale.const.reshape(-1).astype(np.float32) / np.float32(op.attr("max_range", 127.0))
    op.set("Out", dequantise(op, _as_int8(op, x), step, _axis(op, step)))


@translates("fake_channel_wise_dequantize_max_abs")
def _(op: Call) -> None:
    x, scales = op.need("X"), op.all("Scales")
    if any(s.const is None for s in scales) or not scales:
        raise op.unsupported(tr("its scales are not stored in the file"))
    bits = op.ints("quant_bits", [8])
    step = scales[0].const.reshape(-1).astype(np.float32)  # type: ignore[union-attr]
    step = step / np.float32(2 ** (bits[0] - 1) - 1)
    if len(scales) == 1:
        op.set("Out", dequantise(op, _as_int8(op, x), step, _axis(op, step)))
        return
    # the result of an integer convolution: output channels times the input's scale
    second = scales[1].const.reshape(-1).astype(np.float32)  # type: ignore[union-attr]
    step = step * second / np.float32(2 ** (bits[-1] - 1) - 1)
    shape = [1, -1, *[1] * (op.rank(x) - 2)] if step.size > 1 else [1] * op.rank(x)
    op.set("Out", op.node("Mul", [op.cast(x, DType.F32), op.const(step.reshape(shape))]))


def _as_int8(op: Call, x: Value) -> Value:
    """Weights of a frozen quantised program are stored as floats that hold integers."""
    if x.dtype is DType.I8:
        return x
    if x.const is not None:
        return op.const(np.clip(np.rint(x.const), -128, 127), DType.I8)
    producer = x.producer
    if producer is not None and producer.op == "QuantizeLinear":
        return x
    return op.cast(op.node("Round", [x]), DType.I8)


@translates("quantize_linear", "dequantize_linear")
def _(op: Call) -> None:
    """Scale is the largest magnitude; `quant_axis` −1 means one scale for all."""
    x, scale = op.need("X"), op.need("Scale")
    step = _step(op, scale)
    axis = _axis(op, step)
    if op.type == "quantize_linear":
        op.set("Y", quantise(op, x, step, axis))
    else:
        op.set("Y", dequantise(op, _as_int8(op, x), step, axis))


@translates("moving_average_abs_max_scale")
def _(op: Call) -> None:
    op.set("Out", op.need("X"))
