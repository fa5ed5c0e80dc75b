"""Integer operators on activations of 16 bits, which ONNX's do not take: floats between
DequantizeLinear and QuantizeLinear."""

from __future__ import annotations

from typing import Any

from ...ir import DType, Value
from ._expansions import real_conv
from ._lower import Call, lowers


def _real(call: Call, at: int, attrs: dict[str, Any] | None = None) -> Value:
    """The operand at inputs `at` to `at` + 2 as float32."""
    value = call.emit("DequantizeLinear", list(call.node.inputs[at : at + 3]), attrs)
    value.dtype = DType.F32
    return value


def _is_wide(call: Call) -> bool:
    return call[0].dtype is DType.I16


@lowers("QLinearConv")
def _(call: Call) -> bool:
    if not _is_wide(call):
        return False
    call.last("QuantizeLinear", [real_conv(call, "Conv"), *call.node.inputs[6:8]])
    return True


@lowers("QLinearMatMul")
def _(call: Call) -> bool:
    if not _is_wide(call):
        return False
    y = call.emit("MatMul", [_real(call, 0), _real(call, 3, {"axis": 1})])
    call.last("QuantizeLinear", [y, *call.node.inputs[6:8]])
    return True


@lowers("QGemm")
def _(call: Call) -> bool:
    if not _is_wide(call):
        return False
    operands: list[Value | None] = [
        _real(call, 0), _real(call, 3, {"axis": 0 if call.filled["transB"] else 1})
    ]  # fmt: skip
    if (c := call.node.input(6)) is not None:
        scales = [call[i].const for i in (1, 4)]
        assert c.const is not None and scales[0] is not None and scales[1] is not None
        worth = float(scales[0].reshape(())) * scales[1].reshape(-1).astype(float)
        operands.append(call.const(c.const * worth, DType.F32))
    y = call.emit("Gemm", operands, call.attrs)
    call.last("QuantizeLinear", [y, *call.node.inputs[7:9]])
    return True


@lowers("QLinearAdd", "QLinearMul")
def _(call: Call) -> bool:
    if not _is_wide(call):
        return False
    op = call.node.op.removeprefix("QLinear")
    y = call.emit(op, [_real(call, 0), _real(call, 3)])
    call.last("QuantizeLinear", [y, *call.node.inputs[6:8]])
    return True


@lowers("QLinearSoftmax", "QLinearAveragePool", "QLinearGlobalAveragePool")
def _(call: Call) -> bool:
    if not _is_wide(call):
        return False
    attrs = {k: v for k, v in call.attrs.items() if k not in ("channels_last", "opset")}
    y = call.emit(call.node.op.removeprefix("QLinear"), [_real(call, 0)], attrs)
    call.last("QuantizeLinear", [y, *call.node.inputs[3:5]])
    return True
