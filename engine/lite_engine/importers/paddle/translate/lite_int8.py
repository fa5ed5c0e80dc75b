"""Integer weights and activations of Paddle-Lite files, as QuantizeLinear/DequantizeLinear.

Static int8: `enable_int8` with `<Slot>0_scale` lists, activations symmetric int8 between `calib`
operators. Weight-only: `<weight>_quant_scale` per channel, int8 or int16, activations float.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from lite_messages import tr

from ....ir import DType, Value
from ..registry import Call, translates

KERNEL_ATTR = "__@kernel_type_attr@__"


def kernel_of(op: Call) -> list[str]:
    """The parts of the kernel string, empty when the file has none."""
    text = op.attr(KERNEL_ATTR)
    return str(text).split("/") if text else []


def scales_of(op: Call, slot: str) -> list[float]:
    """Scales of a slot under the names that Paddle-Lite versions used."""
    name = (op.op.inputs.get(slot) or [""])[0]
    for key in (f"{slot}0_scale", f"{name}_quant_scale"):
        if op.attr(key):
            return [float(v) for v in np.atleast_1d(op.attr(key))]
    if op.attr("weight_scale"):
        return [float(v) for v in np.atleast_1d(op.attr("weight_scale"))]
    return []


def dequantise(op: Call, x: Value, scales: Sequence[float], axis: int) -> Value:
    """DequantizeLinear, symmetric; per channel along `axis` when there are several scales."""
    channels = x.shape[axis] if x.shape is not None and axis < len(x.shape) else None
    if len(scales) > 1 and isinstance(channels, int) and channels != len(scales):
        raise op.unsupported(
            tr(
                "{scales} scales do not fit the {channels} channels of {x}",
                scales=len(scales),
                channels=channels,
                x=x.name,
            )
        )
    steps = np.asarray(scales, np.float32)
    if x.const is not None and len(scales) > 1 and not (steps > 0).all():
        x, steps = _without_dead_channels(op, x, steps, axis)
    if len(scales) == 1:
        return op.node("DequantizeLinear", [x, op.const(steps[0])])
    return op.node("DequantizeLinear", [x, op.const(steps)], axis=axis)


def _without_dead_channels(
    op: Call, x: Value, steps: np.ndarray, axis: int
) -> tuple[Value, np.ndarray]:
    """A channel of scale 0 is all zeros whatever integers are stored. Integer operators divide by
    scales, so the zeros are written down and the scale becomes the smallest of the others."""
    assert x.const is not None
    dead = ~(steps > 0)
    array = np.array(x.const)
    array[(slice(None),) * axis + (dead,)] = 0
    return op.const(array, x.dtype), np.where(dead, steps[~dead].min(initial=1.0), steps)


def weight_of(op: Call, slot: str, axis: int = 0) -> Value:
    """A weight; stored integers come back through DequantizeLinear."""
    w = op.need(slot)
    if w.dtype not in (DType.I8, DType.I16):
        return w
    scales = scales_of(op, slot)
    if not scales:
        return w
    return dequantise(op, w, scales, axis)


def bias_of(op: Call, slot: str = "Bias") -> Value | None:
    """A bias; Paddle-Lite's weight-only quantization stores it as integers too."""
    b = op[slot]
    if b is None or b.const is None or b.dtype not in (DType.I8, DType.I16):
        return b
    scales = np.asarray(scales_of(op, slot), np.float32)
    if scales.size not in (1, b.const.size):
        raise op.unsupported(
            tr(
                "{scales} scales do not fit a bias of {size} elements",
                scales=scales.size,
                size=b.const.size,
            )
        )
    return op.const(b.const.reshape(-1).astype(np.float32) * scales)


def with_int8_input(op: Call, slot: str) -> Value:
    """An activation; an int8 one is dequantised with this operator's input scale."""
    x = op.need(slot)
    if x.dtype is not DType.I8:
        return x
    scales = op.attr(f"{slot}0_scale") or op.attr("Input0_scale") or op.attr("X0_scale")
    if not scales:
        raise op.unsupported(tr("its input {x} is int8, but has no scale", x=x.name))
    return dequantise(op, x, [float(np.atleast_1d(scales)[0])], 0)


def with_int8_output(op: Call, y: Value, slot: str = "Output") -> Value:
    """The result; quantised when the kernel of the file writes int8."""
    kernel = kernel_of(op)
    if len(kernel) != 5 or kernel[1] != "int8_out":
        return y
    scales = op.attr(f"{slot}0_scale") or op.attr("Output0_scale") or op.attr("Out0_scale")
    if not scales:
        raise op.unsupported(tr("its kernel writes int8, but the output has no scale"))
    return quantise(op, y, float(np.atleast_1d(scales)[0]))


def quantise(op: Call, x: Value, scale: float) -> Value:
    return op.node("QuantizeLinear", [x, op.const(scale), op.const(0, DType.I8)])


@translates("calib", "calib_once", "calib_inplace")
def _(op: Call) -> None:
    x = op.need("Input")
    alias = (kernel_of(op) + ["", ""])[1]
    scale = float(op.attr("scale", 1.0))
    if x.dtype is DType.I8:
        y = op.node("DequantizeLinear", [x, op.const(scale)])
    elif "to_int8" in alias:
        y = quantise(op, x, scale)
    elif alias.startswith(("int32_to_int64", "fp32_to_int64")):
        y = op.cast(x, DType.I64)
    elif alias.startswith(("int64_to_int32", "fp32_to_int32")):
        y = op.cast(x, DType.I32)
    elif alias.startswith(("int32_to_fp32", "int64_to_fp32", "bool_to_fp32")):
        y = op.cast(x, DType.F32)
    else:
        y = x  # fp16 <-> fp32 of one backend: precision is the plan's choice here
    op.set("Out", y)


@translates("io_copy", "io_copy_once", "layout", "layout_once", "subgraph_copy")
def _(op: Call) -> None:
    """Moves between devices and layouts: no arithmetic."""
    op.set("Out", op.need("Input"))
