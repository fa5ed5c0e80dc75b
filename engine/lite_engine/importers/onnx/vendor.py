"""Operators outside the ONNX domain: which of them are operators of ours, under which name.

Everything else is imported as `domain::Op`, so that the support table can name it.
Source: ContribOperators.md of onnxruntime (domain com.microsoft), Operators-ml.md of ONNX.
"""

from __future__ import annotations

from typing import Any

from ...ops import find_op
from .call import Call
from .classic import classic_op

#: Domain of operators of ours that neither ONNX nor onnxruntime has (`lite_engine.exporters.onnx`).
OWN_DOMAIN = "lite_engine"
_PREVIEW = ("ai.onnx.preview", "ai.onnx.preview.training")

#: com.microsoft operators whose meaning is that of our operator of the same name.
_MICROSOFT = {
    "QLinearAdd",
    "QLinearMul",
    "QLinearAveragePool",
    "QLinearGlobalAveragePool",
    "QLinearConcat",
    "QLinearLeakyRelu",
    "QLinearSigmoid",
    "QLinearSoftmax",
    "QGemm",
    "DynamicQuantizeMatMul",
    "MatMulIntegerToFloat",
    "BiasGelu",
    "QLinearConv",
    "QuantizeLinear",
    "DequantizeLinear",
    "Gelu",
    "Inverse",
    "MatMulNBits",
    "Trilu",
    "Pad",
    "Unique",
    "Range",
    "GridSample",
}


def vendor_op(call: Call, metadata: dict[str, Any]) -> None:
    """Gives a call of another domain its name in our registry; what it says of the whole model goes
    into `metadata`."""
    if call.domain == "com.microsoft":
        _microsoft(call)
    elif call.domain == "ai.onnx.ml" and (call.op == "ZipMap" or find_op(call.op) is not None):
        classic_op(call, metadata)
    elif call.domain in (*_PREVIEW, OWN_DOMAIN) and find_op(call.op) is not None:
        call.version = 99
    else:
        call.op = f"{call.domain}::{call.op}"


def _microsoft(call: Call) -> None:
    op = call.op
    call.version = 99
    if op == "FusedConv":
        call.op = "Conv"
        _activation(call)
    elif op == "FusedGemm":
        call.op = "Gemm"
        alpha, beta = (call.attrs.pop(f"activation_{k}", None) for k in ("alpha", "beta"))
        given = [
            v for v in (alpha, beta, call.attrs.pop("activation_gamma", None)) if v is not None
        ]
        fused = find_op(call.attrs.get("activation", ""))
        call.attrs["activation_params"] = given[: len(fused.attrs)] if fused else []
        _activation(call)
    elif op in ("FastGelu", "BiasGelu") and find_op("BiasGelu") is not None:
        call.attrs = {"approximate": "tanh" if op == "FastGelu" else "none"}
        call.op = "BiasGelu" if len(call.inputs) > 1 else "Gelu"
    elif op == "QuickGelu":
        call.op, call.attrs = "Swish", {"alpha": call.attrs.get("alpha", 1.702)}
    elif op not in _MICROSOFT or find_op(op) is None:
        call.op = f"com.microsoft::{op}"


def _activation(call: Call) -> None:
    """`activation` and `activation_params` are ours as well; empty ones go."""
    for key in ("activation", "activation_params"):
        if not call.attrs.get(key, True):
            del call.attrs[key]
