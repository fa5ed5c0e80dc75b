"""ONNX files from nodes, inputs and weights."""

from __future__ import annotations

import onnx
from onnx import TensorProto, helper


def onnx_bytes(nodes: list, inputs: list, outputs: list, weights: list = (), **kw: object) -> bytes:
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(weights))
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], **kw
    ).SerializeToString()


def two_floats(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [2])
