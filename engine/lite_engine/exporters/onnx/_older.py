"""The newest forms of operators → those of older opsets. Source: Changelog.md of ONNX."""

from __future__ import annotations

import math

import numpy as np
from lite_messages import tr

from ...errors import UnsupportedOperatorError
from ...ir import DType, Value
from ._lower import Call, lowers

_AXES_IN_18 = (
    "ReduceMax", "ReduceMin", "ReduceMean", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum",
    "ReduceLogSumExp", "ReduceSumSquare",
)  # fmt: skip
#: What is left of a reduction over no axis, where that is not the element itself.
_OF_ONE = {"ReduceL1": "Abs", "ReduceL2": "Abs", "ReduceLogSum": "Log"}


def _numbers(value: Value | None) -> list[int] | None:
    """The contents of a constant input, None when it is absent or computed."""
    return None if value is None or value.const is None else value.const.ravel().tolist()


@lowers(*_AXES_IN_18, below=18)
@lowers("ReduceSum", below=13)
def _(call: Call) -> bool:
    """`axes` was an attribute, and its absence always meant all axes."""
    given, axes = call.node.input(1), _numbers(call.node.input(1))
    if given is not None and axes is None:
        return False
    if call.attrs.pop("noop_with_empty_axes", 0) and not axes:
        if call.node.op == "ReduceSumSquare":
            call.last("Mul", [call[0], call[0]])
        else:
            call.last(_OF_ONE.get(call.node.op, "Identity"), [call[0]])
    else:
        call.older([call[0]], {**call.attrs, **({"axes": axes} if axes else {})})
    return True


@lowers("Squeeze", "Unsqueeze", below=13)
def _(call: Call) -> bool:
    given, axes = call.node.input(1), _numbers(call.node.input(1))
    if given is not None and axes is None:
        return False
    call.older([call[0]], {**call.attrs, **({"axes": axes} if axes is not None else {})})
    return True


@lowers("Split", below=18)
def _(call: Call) -> bool:
    """Without sizes the parts were equal; `num_outputs` lets the last be smaller."""
    x, sizes, count = call[0], _numbers(call.node.input(1)), len(call.node.outputs)
    attrs = {k: v for k, v in call.attrs.items() if k != "num_outputs"}
    if call.node.input(1) is None:
        size = x.shape[call.filled["axis"]] if x.shape else None
        if not isinstance(size, int):
            return False
        part = math.ceil(size / count)
        sizes = [part] * (count - 1) + [size - part * (count - 1)]
    if call.opset >= 13:
        call.older([x, call.node.input(1) or call.const(sizes, DType.I64)], attrs)
    elif sizes is None:
        return False
    else:
        call.older([x], {**attrs, "split": sizes})
    return True


@lowers("Resize", below=13)
def _(call: Call) -> bool:
    """`roi` and `scales` had to be there: they are empty where they say nothing."""
    newer = ("antialias", "axes", "keep_aspect_ratio_policy")
    if any(call.attrs.get(k, call.filled[k]) not in (0, None, "stretch") for k in newer):
        return False
    roi, scales, sizes = (call.node.input(i) for i in (1, 2, 3))
    given = [v or call.const([], DType.F32) for v in (roi, scales)]
    inputs = [call[0], *given, *([sizes] if sizes is not None else [])]
    call.older(inputs, {k: v for k, v in call.attrs.items() if k not in newer})
    return True


@lowers("Scan")
def _(call: Call) -> bool:
    """Raises UnsupportedOperatorError for a Scan over batches, which only opset 8 had."""
    if call.filled["batched"]:
        raise UnsupportedOperatorError(
            tr("ONNX has no Scan over batches since opset 9"),
            (call.node.name,),
            where=call.node.name,
            fix=tr("write a .lite file"),
        )
    return False


@lowers("Softmax", "LogSoftmax", "Hardmax", below=13)
def _(call: Call) -> bool:
    """The axes from `axis` on counted as one: the same for the last axis only."""
    rank, axis = len(call[0].shape or ()), int(call.filled["axis"])
    if not rank:
        return False
    axis %= rank
    if axis == rank - 1:
        call.older([call[0]], {"axis": axis})
        return True
    perm = [i for i in range(rank) if i != axis] + [axis]
    moved = call.emit("Transpose", [call[0]], {"perm": perm})
    moved.shape = (None,) * rank
    soft = call.emit(call.node.op, [moved], {"axis": rank - 1})
    call.last("Transpose", [soft], {"perm": np.argsort(perm).tolist()})
    return True


@lowers("HardSwish", below=14)
def _(call: Call) -> None:
    """x · max(0, min(1, x/6 + ½))"""
    gate = call.emit("HardSigmoid", [call[0]], {"alpha": 1 / 6, "beta": 0.5})
    call.last("Mul", [call[0], gate])


@lowers("Swish", below=24)
def _(call: Call) -> None:
    """x · σ(αx)"""
    inner = call.emit("Mul", [call[0], call.const(call.filled["alpha"], call[0])])
    call.last("Mul", [call[0], call.emit("Sigmoid", [inner])])


@lowers("Mish", below=18)
def _(call: Call) -> None:
    """x · tanh(softplus(x))"""
    call.last("Mul", [call[0], call.emit("Tanh", [call.emit("Softplus", [call[0]])])])


@lowers("Gelu", below=20)
def _(call: Call) -> None:
    """½x(1 + erf(x/√2)), or with tanh(√(2/π)(x + 0.044715x³))"""
    x = call[0]
    if call.filled["approximate"] == "tanh":
        cube = call.emit("Mul", [call.emit("Mul", [x, x]), x])
        sum_ = call.emit("Add", [x, call.emit("Mul", [cube, call.const(0.044715, x)])])
        inner = call.emit("Mul", [sum_, call.const(math.sqrt(2 / math.pi), x)])
        curve = call.emit("Tanh", [inner])
    else:
        curve = call.emit("Erf", [call.emit("Mul", [x, call.const(math.sqrt(0.5), x)])])
    gate = call.emit("Add", [curve, call.const(1, x)])
    call.last("Mul", [call.emit("Mul", [x, call.const(0.5, x)]), gate])


@lowers("GroupNormalization", below=21)
def _(call: Call) -> bool:
    """InstanceNormalization of the groups as channels, then scale and bias per channel."""
    x, scale, bias = call[0], call[1], call[2]
    if x.shape is None or scale.const is None or bias.const is None:
        return False
    groups, ones = call.filled["num_groups"], np.ones(call.filled["num_groups"])
    shape = call.emit("Shape", [x])
    flat = call.emit("Reshape", [x, call.const([0, groups, -1], DType.I64)])
    epsilon = {"epsilon": call.filled["epsilon"]}
    inputs = [flat, call.const(ones, x), call.const(0 * ones, x)]
    y = call.emit("Reshape", [call.emit("InstanceNormalization", inputs, epsilon), shape])
    each = (-1, *[1] * (len(x.shape) - 2))
    y = call.emit("Mul", [y, call.const(scale.const.reshape(each), x)])
    call.last("Add", [y, call.const(bias.const.reshape(each), x)])
    return True


@lowers("RMSNormalization", below=23)
def _(call: Call) -> bool:
    """x / √(mean(x²) + ε) · scale"""
    x = call[0]
    if x.shape is None or x.dtype is not DType.F32:
        return False
    first = int(call.filled["axis"]) % len(x.shape)
    axes = call.const(range(first, len(x.shape)), DType.I64)
    mean = call.emit("ReduceMean", [call.emit("Mul", [x, x]), axes], {"keepdims": 1})
    root = call.emit("Sqrt", [call.emit("Add", [mean, call.const(call.filled["epsilon"], x)])])
    call.last("Mul", [call.emit("Div", [x, root]), call[1]])
    return True


@lowers("LayerNormalization", below=17)
def _(call: Call) -> bool:
    """(x − mean) / √(variance + ε) · scale + bias"""
    x = call[0]
    if x.shape is None or x.dtype is not DType.F32 or len(call.node.outputs) > 1:
        return False
    first = int(call.filled["axis"]) % len(x.shape)
    axes = call.const(range(first, len(x.shape)), DType.I64)
    d = call.emit("Sub", [x, call.emit("ReduceMean", [x, axes], {"keepdims": 1})])
    variance = call.emit("ReduceMean", [call.emit("Mul", [d, d]), axes], {"keepdims": 1})
    root = call.emit("Sqrt", [call.emit("Add", [variance, call.const(call.filled["epsilon"], x)])])
    y = call.emit("Mul", [call.emit("Div", [d, root]), call[1]])
    bias = call.node.input(2)
    call.last("Identity", [y]) if bias is None else call.last("Add", [y, bias])
    return True
