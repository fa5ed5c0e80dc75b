"""Writing into a part of a tensor (`x[a:b] = v`)."""

from __future__ import annotations

import numpy as np
from lite_messages import tr

from ....ir import DType, Value
from ..registry import Call, translates
from .shape import sliced


@translates("set_value")
def _(op: Call) -> None:
    """The part is addressed by its element numbers and scattered into the flattened tensor."""
    x = op.need("Input")
    shape = op.node("Shape", [x])
    total = op.node("Range", [op.const(0), op.node("Size", [x]), op.const(1)])
    index = sliced(op, op.node("Reshape", [total, shape]), "Steps")
    gone = op.ints("decrease_axes")
    if gone:
        index = op.node("Squeeze", [index, op.const(gone)])
    if op.ints("none_axes"):
        raise op.unsupported(tr("it assigns through None axes; write the index without None"))
    value = op.node("Expand", [_value(op, x), op.node("Shape", [index])])
    flat = op.node("ScatterND", [
        op.to_shape(x, [-1]), op.to_shape(index, [-1, 1]), op.to_shape(value, [-1])
    ])  # fmt: skip
    op.set("Out", op.node("Reshape", [flat, shape]))


def _value(op: Call, x: Value) -> Value:
    tensor = op["ValueTensor"]
    dtype = x.dtype or DType.F32
    if tensor is not None:
        return op.cast(tensor, dtype)
    names = ("values", "fp32_values", "int32_values", "int64_values", "fp64_values", "bool_values")
    data = next((op.attr(n) for n in names if op.attr(n)), [0.0])
    return op.const(np.asarray(data).reshape(op.ints("shape", [-1])), dtype)
