"""Operators that make tensors: fill, range, masks."""

from __future__ import annotations

import math

import numpy as np
from lite_messages import tr

from ....ir import DType, Value
from ..registry import Call, translates


def filled(op: Call, shape: Value, value: Value) -> Value:
    """A tensor of one value; a constant when its shape is known and it is small."""
    if shape.const is not None and value.const is not None:
        dims = [int(d) for d in shape.const]
        if any(d < 0 for d in dims):
            raise op.unsupported(
                tr("it fills a tensor of shape {dims}, which is not valid", dims=dims)
            )
        if int(np.prod(dims, dtype=np.float64)) <= 1 << 16:
            return op.const(np.full(dims, value.const.reshape(())), value.dtype)
    return op.node("Expand", [value, shape])


def _fill_value(op: Call, dtype: DType) -> Value:
    tensor = op["ValueTensor"]
    if tensor is not None:
        return op.cast(op.to_shape(tensor, []), dtype)
    text = op.attr("str_value")
    if text in (None, ""):
        return op.const(float(op.attr("value", 0.0)), dtype)
    text = str(text)
    try:
        whole = not dtype.is_float and text.lstrip("-").isdigit()
        return op.const(int(text) if whole else float(text), dtype)
    except (ValueError, OverflowError):
        raise op.unsupported(
            tr(
                "it fills with {text!r}, which is not a value of {dtype}",
                text=text[:40],
                dtype=dtype,
            )
        ) from None


@translates("fill_constant")
def _(op: Call) -> None:
    dtype = op.attr_dtype("dtype", 5)
    shape = op.list_input("ShapeTensor", "ShapeTensorList", "shape")
    shape = op.const([], DType.I64) if shape is None else shape
    op.set("Out", filled(op, shape, _fill_value(op, dtype)))


@translates("fill_constant_batch_size_like")
def _(op: Call) -> None:
    """One dimension of the shape comes from the input."""
    x, shape = op.need("Input"), op.ints("shape")
    source, target = int(op.attr("input_dim_idx", 0)), int(op.attr("output_dim_idx", 0))
    dtype = op.attr_dtype("dtype", 5)
    size = op.node("Shape", [x], start=source, end=source + 1)
    if not 0 <= target < len(shape):
        raise op.unsupported(
            tr(
                "dimension {target} is outside a shape of {count} dimensions",
                target=target,
                count=len(shape),
            )
        )
    parts = [op.const(shape[:target], DType.I64), size, op.const(shape[target + 1 :], DType.I64)]
    y = filled(op, op.node("Concat", parts, axis=0), _fill_value(op, dtype))
    if y.shape is None:
        y.shape = tuple(None if i == target else d for i, d in enumerate(shape))
    op.set("Out", y)


@translates("fill_any_like", "fill_zeros_like", "fill_any", "zeros_like", "ones_like")
def _(op: Call) -> None:
    x = op.need("X")
    dtype = op.dtype(x)
    if int(op.attr("dtype", -1)) >= 0:
        dtype = op.attr_dtype("dtype", 5)
    value = op.const(float(op.attr("value", 0.0)), dtype)
    op.set("Out", filled(op, op.node("Shape", [x]), value))


@translates("assign_value")
def _(op: Call) -> None:
    dtype = op.attr_dtype("dtype", 5)
    names = ("values", "fp32_values", "int32_values", "int64_values", "bool_values", "fp64_values",
             "int8_values")  # fmt: skip
    data: list[float] = next((op.attr(n, []) for n in names if op.attr(n)), [])
    array, shape = np.asarray(data), op.ints("shape")
    if array.dtype.kind not in "fiub" or array.ndim != 1 or array.size != math.prod(shape):
        raise op.unsupported(
            tr("{values} values do not fill shape {shape}", values=len(data), shape=shape)
        )
    op.set("Out", op.const(array.reshape(shape), dtype))


@translates("range")
def _(op: Call) -> None:
    parts = [op.to_shape(op.need(s), []) for s in ("Start", "End", "Step")]
    dtype = op.dtype(parts[0])
    op.set("Out", op.node("Range", [op.cast(p, dtype) for p in parts]))


@translates("linspace")
def _(op: Call) -> None:
    start, stop, count = (op.need(s) for s in ("Start", "Stop", "Num"))
    if any(v.const is None for v in (start, stop, count)):
        raise op.unsupported(tr("its bounds are computed at run time"))
    n = op.fixed_int(count, tr("the number of points"))
    if not 0 <= n <= 1 << 24:
        raise op.unsupported(tr("it makes {number} points, which is not supported", number=n))
    bounds = [v.const.ravel() for v in (start, stop)]  # type: ignore[union-attr]
    if any(len(b) != 1 for b in bounds):
        raise op.unsupported(tr("its bounds are not single numbers"))
    first, last = (float(b[0]) for b in bounds)
    op.set("Out", op.const(np.linspace(first, last, n), op.attr_dtype("dtype", 5)))


@translates("eye")
def _(op: Call) -> None:
    rows, cols = int(op.attr("num_rows", 1)), int(op.attr("num_columns", -1))
    cols = rows if cols < 0 else cols
    if not (0 < rows <= 8192 and 0 < cols <= 8192):
        raise op.unsupported(
            tr("it makes a {rows}x{cols} matrix, which is not supported", rows=rows, cols=cols)
        )
    op.set("Out", op.const(np.eye(rows, cols), op.attr_dtype("dtype", 5)))


@translates("tril_triu")
def _(op: Call) -> None:
    x, k = op.need("X"), op.const(int(op.attr("diagonal", 0)))
    op.set("Out", op.node("Trilu", [x, k], upper=int(not op.flag("lower", True))))


@translates("meshgrid")
def _(op: Call) -> None:
    parts = op.all("X")
    count = len(parts)
    sizes = [op.vector(op.node("Shape", [op.to_shape(p, [-1])])) for p in parts]
    shape = op.node("Concat", sizes, axis=0)
    for i, part in enumerate(parts):
        lifted = op.to_shape(part, [-1 if j == i else 1 for j in range(count)])
        op.set("Out", op.node("Expand", [lifted, shape]), i)


@translates("sequence_mask")
def _(op: Call) -> None:
    """mask[…, j] = j < x[…]"""
    x, size = op.need("X"), int(op.attr("maxlen", -1))
    tensor = op["MaxLenTensor"]
    if tensor is not None:
        stop = op.cast(op.to_shape(tensor, []), DType.I64)
    elif size > 0:
        stop = op.const(size)
    else:
        stop = op.node("ReduceMax", [op.cast(x, DType.I64)], keepdims=0)
    steps = op.node("Range", [op.const(0), stop, op.const(1)])
    lengths = op.node("Unsqueeze", [op.cast(x, DType.I64), op.const([-1])])
    mask = op.node("Less", [steps, lengths])
    op.set("Y", op.cast(mask, op.attr_dtype("out_dtype", 3)))


@translates("gaussian_random", "uniform_random", "randint", "sampling_id", "bernoulli",
            "multinomial", "truncated_gaussian_random", "randperm")  # fmt: skip
def _(op: Call) -> None:
    raise op.unsupported(tr("it draws random numbers; feed them as an input instead"))
