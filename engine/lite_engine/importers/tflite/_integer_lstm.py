"""LSTM layers on bytes whose cell has 16 bits: every scale becomes a ratio of QLSTM.

What LiteRT's kernel does and its documents do not say: the state starts at the zero point; of a
projection the zero point of what goes in is subtracted where it should be added; peepholes reach
as many cells as the layer has outputs, counted through all rows where time goes first.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from lite_messages import tr

from ...errors import ModelFormatError
from ...ir import DType, Value
from ...ops.quant_lstm import CELL_BITS
from ._call import Call
from .model import Tensor

Array = np.ndarray
_STATE, _CELL, _PROJECTION = 18, 19, 16


def takes(c: Call) -> bool:
    """Whether the layer is one of LiteRT's integer kernel."""
    if not (c.has(_STATE) and c.has(_CELL) and len(c.op.intermediates) == 5):
        return False
    tensors = (c.tensor(0), c.tensor(2), c.tensor(_STATE), c.tensor(_CELL))
    known = all(t.quant is not None for t in (*tensors, _between(c, 4), c.output()))
    return known and [t.dtype for t in tensors] == [DType.I8] * 3 + [DType.I16]


def layer(c: Call) -> Value:
    """x (N,T,I), or (T,N,I) when time goes first → (N,T,O), all bytes."""
    c.is_raw = True
    time_major = bool(c.opt("time_major"))
    x = c.raw(0) if time_major else c.emit.transpose(c.raw(0), (1, 0, 2))
    y = _steps(c, x, time_major)
    return y if time_major else c.emit.transpose(y, (1, 0, 2))


def _steps(c: Call, x: Value, time_major: bool) -> Value:
    first = 0 if c.has(1) else 1
    gates = range(first, 4)
    x_scale, y_scale = _scale(c.tensor(0)), _scale(c.tensor(_STATE))
    cell_bits = _cell_bits(c)
    projected, normalized = c.has(_PROJECTION), c.has(21)
    steps = [_scale(_between(c, g)) if normalized else np.float32(2**-12) for g in range(4)]
    ratios = np.zeros((4, len(gates)), np.float32)
    for at, g in enumerate(gates):
        ratios[0, at] = _scale(c.tensor(1 + g)) * x_scale / steps[g]
        ratios[1, at] = _scale(c.tensor(5 + g)) * y_scale / steps[g]
        if c.has(_peephole(g)):
            ratios[2, at] = np.float32(2.0**-cell_bits) * _scale(c.tensor(_peephole(g))) / steps[g]
        if normalized:
            ratios[3, at] = _scale(c.tensor(20 + g))
    inner = _between(c, 4)
    zero = _zero(inner)
    attrs: dict[str, Any] = {
        "x_zero": _zero(c.tensor(0)), "y_zero": _zero(c.tensor(_STATE)),
        "hidden_zero": -zero if projected else zero, "cell_bits": cell_bits,
        "cell_clip": _clip(c.opt("cell_clip"), _scale(c.tensor(_CELL)), 32767),
        "hidden_ratio": float(np.float32(2.0**-30) / _scale(_between(c, 4))),
    }  # fmt: skip
    parts: list[Array | None] = [
        _stack(c, [1 + g for g in gates]), _stack(c, [5 + g for g in gates]),
        _stack(c, [12 + g for g in gates]), ratios, _peepholes(c, first, time_major),
        _stack(c, [20 + g for g in gates]) if normalized else None, None, None,
    ]  # fmt: skip
    if projected:
        parts[6] = _constant(c, _PROJECTION)
        parts[7] = _constant(c, 17) if c.has(17) else None
        ratio = _scale(c.tensor(_PROJECTION)) * _scale(inner) / y_scale
        attrs["projection_ratio"] = float(ratio)
        attrs["y_clip"] = _clip(c.opt("proj_clip"), _scale(c.output()), 127)
    return c.emit("QLSTM", x, *parts, **attrs)


def _peephole(gate: int) -> int:
    """Number of the input; the gate of the cell has none."""
    return {0: 9, 1: 10, 3: 11}.get(gate, 10**6)


def _peepholes(c: Call, first: int, time_major: bool) -> Array | None:
    """(gates, rows, units), 0 for cells that LiteRT's kernel does not reach"""
    if not c.has(10):
        return None
    given = _stack(c, [_peephole(g) for g in (0, 1, 3) if g >= first])
    units, outputs = given.shape[1], c.tensor(_STATE).shape[-1]
    if outputs == units:
        return given[:, None]
    rows = c.tensor(0).shape[1] if time_major else 1
    reached = np.zeros((len(given), rows * units), given.dtype)
    reached[:, : rows * outputs] = np.tile(given[:, :outputs], rows)
    return reached.reshape(len(given), rows, units)


def _cell_bits(c: Call) -> int:
    part, exponent = math.frexp(_scale(c.tensor(_CELL)))
    if part != 0.5 or 1 - exponent not in CELL_BITS:
        raise ModelFormatError(
            tr(
                "tflite: {source}: the cell's scale must be a power of two from 2^-15 to 2^-9, "
                "got {scale}",
                source=c.emit.source, scale=_scale(c.tensor(_CELL)),
            )
        )  # fmt: skip
    return 1 - exponent


def _clip(limit: float, scale: np.float32, most: int) -> int:
    return min(int(np.float32(limit) / scale), most) if limit > 0 else 0


def _between(c: Call, index: int) -> Tensor:
    return c.tensors.tensor(c.op.intermediates[index])


def _scale(tensor: Tensor) -> np.float32:
    if tensor.quant is None or len(tensor.quant.scale) != 1 or not tensor.quant.scale[0] > 0:
        raise ModelFormatError(
            tr("tflite: {tensor} of an LSTM needs one scale above 0", tensor=tensor.name)
        )
    return np.float32(tensor.quant.scale[0])


def _zero(tensor: Tensor) -> int:
    return 0 if tensor.quant is None else int(tensor.quant.zero_point[0])


def _constant(c: Call, index: int) -> Array:
    value, tensor = c.raw(index).const, c.tensor(index)
    if value is None:
        raise ModelFormatError(
            tr(
                "tflite: {source}: the weight {tensor} is not constant",
                source=c.emit.source, tensor=tensor.name,
            )
        )  # fmt: skip
    return np.asarray(value)


def _stack(c: Call, indices: list[int]) -> Array:
    arrays = [_constant(c, i) for i in indices]
    shapes = [a.shape for a in arrays]
    if len(set(shapes)) != 1:
        raise ModelFormatError(
            tr(
                "tflite: {source}: weights of the four gates have shapes {shapes}",
                source=c.emit.source, shapes=", ".join(str(list(s)) for s in shapes),
            )
        )  # fmt: skip
    return np.stack(arrays)
