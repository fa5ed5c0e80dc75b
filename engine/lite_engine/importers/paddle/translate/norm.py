"""Normalization."""

from __future__ import annotations

import math

from lite_messages import tr

from ....ir import Value
from ..registry import Call, translates
from .conv import channels_first, channels_last, is_channels_last
from .create import filled


@translates("batch_norm", "sync_batch_norm", "batch_norm_")
def _(op: Call) -> None:
    x = op.need("X")
    last = op.attr("data_layout", "NCHW") == "NHWC" and op.rank(x) > 2
    if last:
        x = channels_first(op, x)
    y = op.node(
        "BatchNormalization",
        [x, op.need("Scale"), op.need("Bias"), op.need("Mean"), op.need("Variance")],
        epsilon=float(op.attr("epsilon", 1e-5)),
    )
    if op.flag("fuse_with_relu"):
        y = op.node("Relu", [y])
    op.set("Y", channels_last(op, y) if last else y)


def _scale_and_bias(op: Call, x: Value) -> tuple[Value, Value]:
    """The inputs of those names; 1 and 0 per channel of x (N,C,…) where they are absent."""
    channels = op.size(x, 1)
    scale, bias = op["Scale"], op["Bias"]
    if scale is None or bias is None:
        if channels is None:
            raise op.unsupported(tr("it has no scale, and an unknown number of channels"))
        scale = scale or filled(op, op.const([channels]), op.const(1.0))
        bias = bias or filled(op, op.const([channels]), op.const(0.0))
    return scale, bias


@translates("instance_norm")
def _(op: Call) -> None:
    x = op.need("X")
    scale, bias = _scale_and_bias(op, x)
    eps = float(op.attr("epsilon", 1e-5))
    y = op.node("InstanceNormalization", [x, scale, bias], epsilon=eps)
    if op.attr("activation_type"):  # Paddle-Lite
        y = op.node("Relu", [y])
    op.set("Y", y)


@translates("layer_norm")
def _(op: Call) -> None:
    x = op.need("X")
    axis = int(op.attr("begin_norm_axis", 1))
    tail = list(x.shape[axis:]) if x.shape is not None else []
    scale, bias = op["Scale"], op["Bias"]
    if not all(isinstance(d, int) for d in tail):
        size = scale.shape[0] if scale is not None and scale.shape else None
        known = [d for d in tail if isinstance(d, int)]
        if len(known) != len(tail) - 1 or not isinstance(size, int):
            raise op.unsupported(tr("it normalizes axes of unknown size; import with shapes=…"))
        tail = [d if isinstance(d, int) else size // math.prod(known) for d in tail]
    dims = [int(d) for d in tail]  # type: ignore[arg-type]
    if scale is None:
        scale = filled(op, op.const([math.prod(dims)]), op.const(1.0))
    if len(dims) != 1:
        scale = op.to_shape(scale, dims)
        bias = None if bias is None else op.to_shape(bias, dims)
    op.set("Y", op.node(
        "LayerNormalization", [x, scale, bias], axis=axis, epsilon=float(op.attr("epsilon", 1e-5))
    ))  # fmt: skip


@translates("group_norm")
def _(op: Call) -> None:
    x = op.need("X")
    last = is_channels_last(op) or op.attr("data_layout") == "NHWC"
    if last:
        x = channels_first(op, x)
    groups = int(op.attr("groups", 1))
    scale, bias = _scale_and_bias(op, x)
    eps = float(op.attr("epsilon", 1e-5))
    y = op.node("GroupNormalization", [x, scale, bias], num_groups=groups, epsilon=eps)
    op.set("Y", channels_last(op, y) if last else y)


@translates("lrn")
def _(op: Call) -> None:
    """Paddle's alpha multiplies the sum, ONNX's the mean over `n`."""
    size = int(op.attr("n", 5))
    op.set("Out", op.node(
        "LRN", [op.need("X")], size=size, alpha=float(op.attr("alpha", 1e-4)) * size,
        beta=float(op.attr("beta", 0.75)), bias=float(op.attr("k", 2.0)),
    ))  # fmt: skip


@translates("norm")
def _(op: Call) -> None:
    """x / √(Σx² + ε) along an axis"""
    x = op.need("X")
    total = op.node(
        "ReduceSum", [op.node("Mul", [x, x]), op.const([int(op.attr("axis", 1))])], keepdims=1
    )
    eps = op.const(float(op.attr("epsilon", 1e-10)))
    op.set("Out", op.node("Div", [x, op.node("Sqrt", [op.node("Add", [total, eps])])]))


@translates("p_norm")
def _(op: Call) -> None:
    x, order = op.need("X"), float(op.attr("porder", 2.0))
    keep = int(op.flag("keepdim"))
    if op.flag("asvector"):
        x, axis = op.to_shape(x, [-1]), 0
    else:
        axis = int(op.attr("axis", -1))
    op.set("Out", _p_norm(op, x, order, axis, keep))


def _p_norm(op: Call, x: Value, order: float, axis: int, keep: int) -> Value:
    axes = op.const([axis])
    if order == 0.0:  # the number of elements other than 0
        there = op.cast(op.node("NotEqual", [x, op.const(0, like=x)]), op.dtype(x))
        return op.node("ReduceSum", [there, axes], keepdims=keep)
    if order == 2.0:
        return op.node("ReduceL2", [x, axes], keepdims=keep)
    size = op.node("Abs", [x])
    if order == 1.0:
        return op.node("ReduceSum", [size, axes], keepdims=keep)
    if math.isinf(order):
        return op.node("ReduceMax" if order > 0 else "ReduceMin", [size, axes], keepdims=keep)
    total = op.node("ReduceSum", [op.node("Pow", [size, op.const(order)]), axes], keepdims=keep)
    return op.node("Pow", [total, op.const(1.0 / order)])
