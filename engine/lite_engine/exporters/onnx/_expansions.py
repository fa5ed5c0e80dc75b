"""Operators of ours in those of ONNX: fused activations, residuals, functions that it lacks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from lite_messages import tr

from ...errors import UnsupportedOperatorError
from ...ir import DType, Value
from ...ops import get_op, residual_of
from ._lower import Call, lowers


def apply(call: Call, name: str, params: Sequence[float], x: Value) -> tuple[str, list[Any], Any]:
    """The node that computes a fused activation: operator, inputs, attributes."""
    if name == "Clip":
        return name, [x, *(call.const(p, x) for p in params)], {}
    if name == "Gelu":
        return name, [x], {"approximate": "tanh" if params and params[0] else "none"}
    return name, [x], dict(zip(get_op(name).attrs, params))


@lowers("*")
def _(call: Call) -> bool:
    """op(…, activation=f) → f(op(…)); Conv(…, residual) → f(Conv(…) + residual), Gemm likewise"""
    node, name = call.node, call.attrs.pop("activation", "")
    params = call.attrs.pop("activation_params", [])
    residual = residual_of(node)
    if not name and residual is None:
        return False
    inputs = list(node.inputs if residual is None else node.inputs[:3])
    if not name:
        call.last("Add", [call.emit(node.op, inputs, call.attrs), residual])
        return True
    y = call.emit(node.op, inputs, call.attrs)
    if residual is not None:
        y = call.emit("Add", [y, residual])
    call.last(*apply(call, name, params, y))
    return True


# ---- functions of one number


@lowers("Silu")
def _(call: Call) -> None:
    call.last("Mul", [call[0], call.emit("Sigmoid", [call[0]])])


@lowers("LogSigmoid")
def _(call: Call) -> None:
    """ln σ(x) = −softplus(−x)"""
    call.last("Neg", [call.emit("Softplus", [call.emit("Neg", [call[0]])])])


@lowers("TanhShrink")
def _(call: Call) -> None:
    call.last("Sub", [call[0], call.emit("Tanh", [call[0]])])


@lowers("Rsqrt")
def _(call: Call) -> None:
    call.last("Reciprocal", [call.emit("Sqrt", [call[0]])])


@lowers("Square")
def _(call: Call) -> None:
    call.last("Mul", [call[0], call[0]])


@lowers("Log10", "Log2")
def _(call: Call) -> None:
    base = 10 if call.node.op == "Log10" else 2
    call.last("Mul", [call.emit("Log", [call[0]]), call.const(1 / math.log(base), call[0])])


@lowers("Log1p")
def _(call: Call) -> None:
    """Less exact near 0, where ONNX has nothing better."""
    call.last("Log", [call.emit("Add", [call[0], call.const(1, call[0])])])


@lowers("Expm1")
def _(call: Call) -> None:
    """Less exact near 0, where ONNX has nothing better."""
    call.last("Sub", [call.emit("Exp", [call[0]]), call.const(1, call[0])])


@lowers("Trunc")
def _(call: Call) -> None:
    """sign(x) · ⌊|x|⌋"""
    whole = call.emit("Floor", [call.emit("Abs", [call[0]])])
    call.last("Mul", [call.emit("Sign", [call[0]]), whole])


# ---- functions of two


@lowers("SquaredDifference")
def _(call: Call) -> None:
    d = call.emit("Sub", [call[0], call[1]])
    call.last("Mul", [d, d])


@lowers("NotEqual")
def _(call: Call) -> None:
    call.last("Not", [call.emit("Equal", [call[0], call[1]])])


@lowers("Mod")
def _(call: Call) -> bool:
    """Of floats ONNX has only the remainder with the dividend's sign: b more where b has another"""
    a, b = call[0], call[1]
    if call.filled["fmod"] or a.dtype is None or not a.dtype.is_float:
        return False
    rest = call.emit("Mod", [a, b], {"fmod": 1})
    signs = call.emit("Mul", [call.emit("Sign", [rest]), call.emit("Sign", [b])])
    other = call.emit("Less", [signs, call.const(0, a)])
    call.last("Where", [other, call.emit("Add", [rest, b]), rest])
    return True


@lowers("Atan2")
def _(call: Call) -> None:
    """atan(a/b), turned by ±π where b < 0; ±π/2 where b = 0"""
    a, b = call[0], call[1]
    zero, pi = call.const(0, a), call.const(math.pi, a)
    angle = call.emit("Atan", [call.emit("Div", [a, b])])
    turned = call.emit(
        "Where",
        [
            call.emit("Less", [a, zero]),
            call.emit("Sub", [angle, pi]),
            call.emit("Add", [angle, pi]),
        ],
    )
    half = call.emit("Mul", [call.emit("Sign", [a]), call.const(math.pi / 2, a)])
    left = call.emit("Where", [call.emit("Less", [b, zero]), turned, angle])
    call.last("Where", [call.emit("Equal", [b, zero]), half, left])


@lowers("BiasGelu")
def _(call: Call) -> None:
    call.last("Gelu", [call.emit("Add", [call[0], call[1]])], call.attrs)


@lowers("ReduceAll", "ReduceAny")
def _(call: Call) -> None:
    """all = min, any = max of 0 and 1"""
    op = "ReduceMin" if call.node.op == "ReduceAll" else "ReduceMax"
    as_int = call.emit("Cast", [call[0]], {"to": DType.I32})
    as_int.dtype = DType.I32
    found = call.emit(op, [as_int, *call.node.inputs[1:]], call.attrs)
    call.last("Cast", [found], {"to": DType.BOOL})


# ---- integer operators


@lowers("QLookup")
def _(call: Call) -> None:
    """Gather(table, x − lowest value of its type)"""
    x, given = call[0], call.filled["output_dtype"]
    table = call.const(call.attrs["table"], DType(given) if given else x)
    index = call.emit("Cast", [x], {"to": DType.I32})
    index.dtype = DType.I32
    if x.dtype is DType.I8:
        index = call.emit("Add", [index, call.const(128, index)])
    call.last("Gather", [table, index])


@lowers("QLinearConv")
def _(call: Call) -> bool:
    """A residual: QLinearAdd of the sum that has scales of its own, or in floats."""
    inputs = call.node.inputs
    if call.node.input(9) is None:
        return False
    if call.node.input(12) is not None:
        y = call.emit(
            "QLinearConv", [*inputs[:6], inputs[12], inputs[13], *inputs[8:9]], call.attrs
        )
        call.last("QLinearAdd", [y, inputs[12], inputs[13], *inputs[9:12], *inputs[6:8]])
        return True
    r = call.emit("DequantizeLinear", list(inputs[9:12]))
    call.last("QuantizeLinear", [call.emit("Add", [real_conv(call, "Conv"), r]), *inputs[6:8]])
    return True


@lowers("QLinearSub", "QLinearPRelu", "QLinearSquaredDifference", "QLinearBatchMatMul")
def _(call: Call) -> None:
    inputs = list(call.node.inputs)
    parts = [call.emit("DequantizeLinear", inputs[i : i + 3]) for i in (0, 3)]
    for value in parts:
        value.dtype = DType.F32
    op = call.node.op.removeprefix("QLinear")
    if op == "SquaredDifference":
        d = call.emit("Sub", parts)
        y = call.emit("Mul", [d, d])
    else:
        y = call.emit({"BatchMatMul": "MatMul"}.get(op, op), parts)
    call.last("QuantizeLinear", [y, *inputs[6:8]])


@lowers("QLinearResize")
def _(call: Call) -> None:
    """Of the integers as they are, in floats."""
    x, attrs = call.node.inputs[0], call.attrs
    assert x is not None and x.dtype is not None and x.shape is not None
    one, zero = call.const(1, DType.F32), call.const(0, x.dtype)
    real = call.emit("DequantizeLinear", [x, one, zero])
    real.dtype = DType.F32
    sizes = call.const([*x.shape[:2], *attrs["size"]], DType.I64)
    mode = {"coordinate_transformation_mode": attrs["coordinate_transformation_mode"]}
    y = call.emit("Resize", [real, None, None, sizes], {"mode": "linear", **mode})
    call.last("QuantizeLinear", [y, one, zero])


@lowers("QLinearConvTranspose")
def _(call: Call) -> None:
    call.last("QuantizeLinear", [real_conv(call, "ConvTranspose"), *call.node.inputs[6:8]])


def real_conv(call: Call, op: str) -> Value:
    """An integer convolution on dequantized inputs; the bias has scale x_scale · w_scale."""
    x, x_scale, x_zero, w, w_scale, w_zero = call.node.inputs[:6]
    assert x_scale is not None and w_scale is not None and w is not None
    axis = 0 if op == "Conv" else 1
    inputs = [
        call.emit("DequantizeLinear", [x, x_scale, x_zero]),
        call.emit("DequantizeLinear", [w, w_scale, w_zero], {"axis": axis}),
    ]
    if (bias := call.node.input(8)) is not None:
        if bias.const is None or x_scale.const is None or w_scale.const is None:
            raise UnsupportedOperatorError(
                tr("a bias or scale that is computed at run time cannot be written"),
                where=call.node.name,
            )
        scale = x_scale.const.reshape(()).astype(np.float64) * w_scale.const.reshape(-1)
        inputs.append(call.const(bias.const * scale, DType.F32))
    for value in inputs:
        value.dtype = DType.F32
    return call.emit(op, inputs, call.attrs)
