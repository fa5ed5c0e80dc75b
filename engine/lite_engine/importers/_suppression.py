"""Non-maximum suppression of TensorFlow and TFLite through ONNX's operator."""

from __future__ import annotations

import numpy as np

from ..ir import DType, Value
from ._emit import Emitter


def non_max_suppression(
    emit: Emitter,
    boxes: Value,
    scores: Value,
    limit: Value,
    iou: Value | float,
    low: Value | float,
) -> Value:
    """boxes (P,4) y0,x0,y1,x1 and scores (P,) → i32 positions of what is kept, best first."""
    found = emit(
        "NonMaxSuppression",
        emit("Unsqueeze", boxes, [0]),
        emit("Unsqueeze", scores, [0, 1]),
        emit.reshape(emit.cast(limit, DType.I64), [1]),
        _vector(emit, iou),
        _vector(emit, low),
    )
    return emit.cast(emit("Gather", found, np.array(2, np.int64), axis=1), DType.I32)


def padded_suppression(
    emit: Emitter, boxes: Value, scores: Value, limit: Value, iou: Value, low: Value
) -> list[Value]:
    """positions and scores filled up with zeros to `limit`, and how many there are."""
    kept = non_max_suppression(emit, boxes, scores, limit, iou, low)
    count = emit.reshape(emit("Size", kept), [1])
    missing = emit("Sub", emit.reshape(emit.cast(limit, DType.I64), [1]), count)
    pads = emit("Concat", emit.const([0]), missing, axis=0)
    best = emit("Gather", scores, kept, axis=0)
    filled = [emit("Pad", v, pads, None, mode="constant") for v in (kept, best)]
    return [*filled, emit("Squeeze", emit.cast(count, DType.I32), [0])]


def _vector(emit: Emitter, number: Value | float) -> Value:
    """One number as (1,) f32."""
    if isinstance(number, Value):
        return emit.reshape(number, [1])
    return emit.const(np.array([number], np.float32))
