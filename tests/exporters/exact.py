"""onnxruntime without optimizations, and with exact sums of products of bytes."""

from __future__ import annotations

import onnx
import pytest

ort = pytest.importorskip("onnxruntime", reason="pip install onnxruntime")

_PRODUCTS = ("QLinearConv", "QLinearMatMul", "QGemm")


def exact_session(data: bytes) -> ort.InferenceSession:
    """On x86 without VNNI, its sums of products of u8 with i8 saturate. The option that avoids that
    is an optimization: it makes the weights unsigned."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    if _multiplies_u8(onnx.shape_inference.infer_shapes(onnx.load_from_string(data)).graph):
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        options.add_session_config_entry("session.x64quantprecision", "1")
    return ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def _multiplies_u8(graph: onnx.GraphProto) -> bool:
    types = {v.name: v.type.tensor_type.elem_type for v in (*graph.input, *graph.value_info)}
    return any(
        node.op_type in _PRODUCTS and types.get(node.input[0]) == onnx.TensorProto.UINT8
        for node in graph.node
    )
