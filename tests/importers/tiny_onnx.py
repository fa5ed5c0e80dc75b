"""A small ONNX model with most of what the format has."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def small_model() -> bytes:
    """Conv → Relu → Reshape → Gemm → Softmax with its weights, an If, and a function."""
    rng = np.random.default_rng(0)

    def const(name: str, *shape: int) -> onnx.TensorProto:
        return numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), name)

    branch = [
        helper.make_graph(
            [helper.make_node(op, ["p"], [f"{op}_out"])],
            op,
            [],
            [helper.make_tensor_value_info(f"{op}_out", TensorProto.FLOAT, None)],
        )
        for op in ("Relu", "Neg")
    ]
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Twice", ["c"], ["t"], domain="local"),
        helper.make_node("Reshape", ["t", "shape"], ["f"]),
        helper.make_node("Gemm", ["f", "g"], ["p"], transB=1),
        helper.make_node("If", ["flag"], ["q"], then_branch=branch[0], else_branch=branch[1]),
        helper.make_node("Softmax", ["q"], ["y"], axis=-1),
    ]
    weights = [
        const("w", 4, 3, 3, 3),
        const("g", 5, 256),
        numpy_helper.from_array(np.array([0, -1], np.int64), "shape"),
        numpy_helper.from_array(np.array(True), "flag"),
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 5])],
        weights,
    )
    twice = helper.make_function(
        "local", "Twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])],
        [helper.make_opsetid("", 17)],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    return helper.make_model(graph, opset_imports=opsets, functions=[twice]).SerializeToString()
