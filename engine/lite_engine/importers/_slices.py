"""Slices as Python, TensorFlow and Paddle mean them, in ONNX's, which differ before an axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..ir import Value
from ._emit import Emitter


def python_slice(
    emit: Emitter, x: Value, starts: Value, ends: Value, axes: Sequence[int], steps: Value | None
) -> Value:
    """x[start:end:step] along each of the axes; the numbers are i64 vectors.

    Backwards from before the axis there is nothing in Python, while ONNX begins at the first
    element. Axes of an open size keep ONNX's rule."""
    shape = x.shape or ()
    sizes = [shape[a] if -len(shape) <= a < len(shape) else None for a in axes]
    backwards = np.zeros(len(axes), np.bool_)
    if steps is not None and steps.const is not None and steps.const.size == len(axes):
        backwards = (steps.const < 0) & [isinstance(size, int) for size in sizes]
    if backwards.any():
        last = [-size if isinstance(size, int) else 0 for size in sizes]
        outside = emit("And", emit("Less", starts, last), backwards)
        if outside.const is None or outside.const.any():
            starts, ends = (emit("Where", outside, [0], v) for v in (starts, ends))
    return emit("Slice", x, starts, ends, list(axes), steps)
