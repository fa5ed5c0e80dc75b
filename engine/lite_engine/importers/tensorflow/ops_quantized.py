"""Quantized values of TensorFlow: fake quantization, and integers with a range as floats."""

from __future__ import annotations

import numpy as np
from lite_messages import tr

from ...errors import ModelFormatError, UnsupportedOperatorError
from ...ir import DType, Value
from .._fake_quant import fake_quant, fake_quant_channels
from ._translate import Call, op

# ---- quantization-aware training


@op("FakeQuantWithMinMaxArgs")
def fake_quant_args(c: Call) -> Value:
    low, high = c.attrs.float("min", -6.0), c.attrs.float("max", 6.0)
    return fake_quant(c.emit, c.x(), low, high, *_integers(c))


@op("FakeQuantWithMinMaxVars")
def fake_quant_vars(c: Call) -> Value:
    low, high = _one_range(c, *_range(c))
    return fake_quant(c.emit, c.x(), float(low), float(high), *_integers(c))


@op("FakeQuantWithMinMaxVarsPerChannel")
def fake_quant_per_channel(c: Call) -> Value:
    """One range per element of the last axis."""
    return fake_quant_channels(c.emit, c.x(), *_range(c), *_integers(c))


def _range(c: Call) -> tuple[np.ndarray, np.ndarray]:
    low, high = c.x(1).const, c.x(2).const
    if low is None or high is None:
        raise ModelFormatError(
            tr("tensorflow: the range of {c} is not constant", c=c.name), fix=tr("freeze the graph")
        )
    return np.asarray(low, np.float32), np.asarray(high, np.float32)


def _one_range(c: Call, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of a whole tensor: arrays of no axis."""
    if not low.size == high.size == 1:
        raise ModelFormatError(
            tr("tensorflow: {c}: ranges of shape {shape} need an axis", c=c.name,
               shape=list(low.shape))
        )  # fmt: skip
    return low.reshape(()), high.reshape(())


def _integers(c: Call) -> tuple[int, bool]:
    return c.attrs.number("num_bits", 8), c.attrs.flag("narrow_range")


# ---- integers with a range


@op("Dequantize")
def dequantize(c: Call) -> Value:
    """y = offset + x · scale, of the range [min, max] that the integers of x stand for; constants
    become floats here. Source: TensorFlow's tf.quantization.dequantize."""
    x = c.x()
    dtype = x.dtype
    if dtype is None or dtype.np.kind not in "iu":
        raise ModelFormatError(
            tr("tensorflow: {c} dequantizes {type}, not integers", c=c.name, type=x.type)
        )
    low, high = _range(c)
    axis = c.attrs.number("axis", -1)
    if axis >= 0:  # a range for each slice
        rank = len(c.emit.dims(x))
        if axis >= rank or low.ndim != 1 or low.shape != high.shape:
            raise ModelFormatError(
                tr("tensorflow: {c}: ranges of shape {shape} do not fit axis {axis} of {type}",
                   c=c.name, shape=list(low.shape), axis=axis, type=x.type)
            )  # fmt: skip
        low, high = (a.reshape([-1 if i == axis else 1 for i in range(rank)]) for a in (low, high))
    else:
        low, high = _one_range(c, low, high)
    mode = c.attrs.text("mode", "MIN_COMBINED")
    scale, offset = _line(c, mode, np.iinfo(dtype.np), low, high)
    if x.const is not None:
        return c.emit.const((x.const * scale + offset).astype(np.float32), c.name)
    y = c.emit("Cast", x, to=DType.F32)
    y = c.emit("Mul", y, c.emit.const(scale.astype(np.float32)))
    return c.emit("Add", y, c.emit.const(offset.astype(np.float32))) if offset.any() else y


def _line(
    c: Call, mode: str, integers: np.iinfo, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(scale, offset) in float64, in the shape of low and high."""
    low, high = low.astype(np.float64), high.astype(np.float64)
    least, most = integers.min, integers.max
    if mode == "SCALED":
        least += c.attrs.flag("narrow_range")
        scale = high / most if least >= 0 else np.maximum(low / least, high / most)
        return scale, np.zeros_like(scale)
    scale = (high - low) / (most - least)
    if mode == "MIN_FIRST":
        # Beyond its documentation, TensorFlow moves the range so that one integer is exactly 0.
        step = np.where(scale == 0, 1, scale.astype(np.float32).astype(np.float64))
        whole = np.copysign(np.floor(np.abs(low / step) + 0.5), low) * step
        return scale, np.where(scale == 0, low, whole) - least * scale
    if mode == "MIN_COMBINED":  # signed integers are moved by half of their range
        return scale, low + (scale * ((most - least + 1) / 2) if least < 0 else 0)
    raise UnsupportedOperatorError(
        tr("the dequantization mode {mode!r} is not known", mode=mode),
        (c.name,),
        fix=tr("use one of {known}", known="MIN_COMBINED, MIN_FIRST, SCALED"),
    )
