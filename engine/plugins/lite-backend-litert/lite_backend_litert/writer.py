"""Graph → a TFLite file, for graphs with fixed shapes in ONNX semantics, NCHW."""

from __future__ import annotations

from lite_engine.exporters.onnx import lowered
from lite_engine.ir import Graph
from lite_engine.ops import infer_types

from . import basic, spatial  # noqa: F401  they register what they write
from .call import WRITERS, Call, File, refused

#: The opset that has Gelu, which TFLite has too, and not Attention, which it lacks.
OPSET = 20


def write_tflite(graph: Graph) -> bytes:
    """The file. Raises UnsupportedOperatorError with the operator that cannot be written."""
    graph = lowered(graph, OPSET)
    infer_types(graph)
    file = File()
    inputs = [file.place(v) for v in graph.inputs]
    for node in graph.nodes:
        if node.op not in WRITERS or node.domain:
            raise refused(node, f"there is no TFLite form of {node.op}")
        WRITERS[node.op](Call(file, node))
    return file.packed(inputs, [file.tensor(v) for v in graph.outputs])
