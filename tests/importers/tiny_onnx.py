"""Small ONNX models with what the format has."""

from __future__ import annotations

from pathlib import Path

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


def every_field(folder: Path) -> Path:
    """A model of constants: data in each field that a tensor, an attribute and a sparse tensor can
    have it in, element types of less than a byte, data in a file beside it, and no types of
    attributes, as before version 2 of the format."""
    made, nodes = TensorProto, []
    values: list[tuple[int, list[float]]] = [
        (made.FLOAT, [1.5, 2]), (made.DOUBLE, [1.5, 2]), (made.INT64, [1, 2]),
        (made.UINT64, [1, 2]), (made.UINT32, [1, 2]), (made.INT32, [1, 2]),
        (made.FLOAT16, [1.5, 2]), (made.BOOL, [0, 1]),
        (made.INT4, [-8, 7]), (made.UINT4, [1, 15]), (made.BFLOAT16, [1, 2]),
    ]  # fmt: skip
    weights = [
        helper.make_tensor(f"w{i}", kind, [2], data) for i, (kind, data) in enumerate(values)
    ]
    bits = numpy_helper.from_array(np.array([1, 2], np.int8), "packed")
    bits.data_type, bits.dims[:] = made.UINT4, [4]
    beside = helper.make_tensor("beside", made.FLOAT, [2], [1, 2])
    beside.ClearField("float_data")
    beside.data_location = made.EXTERNAL
    (folder / "weights.bin").write_bytes(bytes(range(24)))
    for key, value in (("location", "weights.bin"), ("offset", "8"), ("length", "8")):
        beside.external_data.add(key=key, value=value)
    weights += [bits, beside]
    one = [helper.make_tensor("one", made.FLOAT, [1], [3])]
    flat = helper.make_sparse_tensor(one[0], helper.make_tensor("at", made.INT64, [1], [1]), [2])
    pairs = helper.make_sparse_tensor(
        one[0], helper.make_tensor("at", made.INT64, [1, 2], [0, 1]), [1, 2]
    )
    pairs.values.name = "sparse"
    for name, value in (
        ("value_float", 1.5), ("value_int", 2), ("value_floats", [1.5, 2.0]),
        ("value_ints", [1, 2]),
        ("value", weights[0]), ("sparse_value", flat),
    ):  # fmt: skip
        nodes.append(helper.make_node("Constant", [], [name], **{name: value}))
        nodes[-1].attribute[0].type = onnx.AttributeProto.UNDEFINED
    nodes.append(helper.make_node("Pad", ["x", "value_ints"], ["padded"], mode="constant"))
    nodes.append(
        helper.make_node("Sum", ["value", "value_floats", "beside", "sparse_value"], ["sum"])
    )
    nodes.append(helper.make_node("Add", ["sum", "sparse"], ["y"]))
    outputs = ("y", "padded", "value_float")
    graph = helper.make_graph(
        nodes, "fields", [helper.make_tensor_value_info("x", made.FLOAT, [2])],
        [helper.make_tensor_value_info(name, made.FLOAT, None) for name in outputs],
        weights, sparse_initializer=[pairs],
    )  # fmt: skip
    path = folder / "fields.onnx"
    path.write_bytes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()
    )
    return path
