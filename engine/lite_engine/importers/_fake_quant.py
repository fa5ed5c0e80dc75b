"""TensorFlow's fake quantization as QuantizeLinear and DequantizeLinear."""

from __future__ import annotations

import numpy as np
from lite_messages import tr

from ..errors import ModelFormatError
from ..ir import QuantParams, Value
from ._emit import Emitter
from ._tf_ops import clip


def _nudged(
    low: np.ndarray, high: np.ndarray, bits: int, narrow: bool, where: str
) -> tuple[np.ndarray, np.ndarray, int, int]:
    """Scale, zero point and the first and last step of a fake quantization.

    The range is nudged so that 0 is exactly a step, as TensorFlow does:
    s = (high − low) / (qmax − qmin), z = round(qmin − low / s).
    """
    fits = (low <= 0).all() and (high >= 0).all() and (low < high).all()
    if not 2 <= bits <= 8 or not fits:
        raise ModelFormatError(
            tr("fake quantization with {bits} bits is not supported", bits=bits),
            where=where,
            fix=tr("use 2 to 8 bits, and ranges that contain 0"),
        )
    qmin, qmax = int(narrow), (1 << bits) - 1
    scale = ((high - low) / (qmax - qmin)).astype(np.float32)
    zero = np.clip(np.floor(qmin - low / scale + 0.5), qmin, qmax).astype(np.uint8)
    return scale, zero, qmin, qmax


def fake_quant(emit: Emitter, x: Value, low: float, high: float, bits: int, narrow: bool) -> Value:
    """FakeQuantWithMinMax as QuantizeLinear and DequantizeLinear."""
    scale, zero, qmin, qmax = _nudged(
        np.array(low, np.float32), np.array(high, np.float32), bits, narrow, emit.source
    )
    if (qmin, qmax) != (0, 255):
        x = clip(emit, x, float((qmin - int(zero)) * scale), float((qmax - int(zero)) * scale))
    params = (np.asarray(scale), np.asarray(zero))
    stored = emit("QuantizeLinear", x, *params)
    stored.quant = QuantParams(*params)
    return emit("DequantizeLinear", stored, *params)


def fake_quant_channels(
    emit: Emitter, x: Value, low: np.ndarray, high: np.ndarray, bits: int, narrow: bool
) -> Value:
    """The same with one range per element of the last axis."""
    scale, zero, qmin, qmax = _nudged(low, high, bits, narrow, emit.source)
    if (qmin, qmax) != (0, 255):
        at = zero.astype(np.float32)
        x = emit("Min", emit("Max", x, (qmin - at) * scale), (qmax - at) * scale)
    axis = emit.rank(x) - 1
    stored = emit("QuantizeLinear", x, scale, zero, axis=axis)
    stored.quant = QuantParams(scale, zero, axis)
    return emit("DequantizeLinear", stored, scale, zero, axis=axis)
