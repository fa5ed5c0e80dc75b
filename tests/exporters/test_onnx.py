"""Written ONNX files give in ONNX Runtime what the file they came from gives there."""

import numpy as np
import onnx
import pytest
from lite_engine.exporters.onnx import why_not, write_bytes
from lite_engine.importers.onnx import read_bytes
from lite_engine.ir import DType, Graph, Value
from lite_engine.ops import infer_types
from lite_engine.passes.pipeline import optimize_graph
from onnx import TensorProto, helper, numpy_helper

from benchmarks import zoo

from .exact import exact_session


def _run(model: bytes, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    return exact_session(model).run(None, feeds)


@pytest.mark.parametrize("name", ["mobilenet_v3_small", "shufflenet_v2", "yolov3_tiny"])
def test_a_network_of_the_zoo_written_back_gives_the_same_numbers(name):
    model = zoo.build(name).SerializeToString()
    graph = read_bytes(model)
    rng = np.random.default_rng(0)
    feeds = {v.name: rng.random(v.shape, np.float32) for v in graph.inputs}
    expected = _run(model, feeds)
    for written in (graph, optimize_graph(graph)):
        data = write_bytes(written)
        onnx.checker.check_model(onnx.load_from_string(data), full_check=True)
        for got, want in zip(_run(data, feeds), expected, strict=True):
            np.testing.assert_allclose(got, want, atol=1e-5 * np.abs(want).max())


def test_a_quantized_model_written_back_gives_the_same_integers():
    """The optimised graph has QLinearConv, which rounds once where the file rounds twice."""
    rng = np.random.default_rng(1)
    weight = rng.integers(-127, 128, (4, 3, 3, 3)).astype(np.int8)
    constants = {
        "s": np.float32(0.02), "z": np.uint8(128), "ws": np.float32(0.01), "wz": np.int8(0),
        "ys": np.float32(0.1), "yz": np.uint8(120), "w": weight,
    }  # fmt: skip
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wd"]),
        helper.make_node("Conv", ["d", "wd"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("QuantizeLinear", ["c", "ys", "yz"], ["y"]),
    ]
    model = helper.make_model(
        helper.make_graph(
            nodes,
            "quantized",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])],
            [helper.make_tensor_value_info("y", TensorProto.UINT8, [1, 4, 8, 8])],
            [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
    ).SerializeToString()
    feeds = {"x": rng.standard_normal((1, 3, 8, 8), np.float32)}
    graph = read_bytes(model)
    optimised = optimize_graph(graph)
    assert "QLinearConv" in {n.op for n in optimised.nodes}
    expected = _run(model, feeds)[0].astype(int)
    assert np.array_equal(_run(write_bytes(graph), feeds)[0], expected)
    assert np.abs(_run(write_bytes(optimised), feeds)[0] - expected).max() <= 1


def test_subgraphs_see_constants_of_the_same_name_around_them():
    branch = {
        name: helper.make_graph(
            [helper.make_node("Mul", ["x", "k"], [f"{name}_out"])],
            name,
            [],
            [helper.make_tensor_value_info(f"{name}_out", TensorProto.FLOAT, [2])],
            [numpy_helper.from_array(np.float32([factor, factor]), "k")],
        )
        for name, factor in {"then": 2, "else": 3}.items()
    }
    nodes = [
        helper.make_node("If", ["c"], ["i"], then_branch=branch["then"],
                         else_branch=branch["else"]),
        helper.make_node("Add", ["i", "ten"], ["y"]),
    ]  # fmt: skip
    model = helper.make_model(
        helper.make_graph(
            nodes,
            "choice",
            [helper.make_tensor_value_info("c", TensorProto.BOOL, []),
             helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])],
            [numpy_helper.from_array(np.float32([10, 10]), "ten")],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
    ).SerializeToString()  # fmt: skip
    data = write_bytes(read_bytes(model))
    for choice, expected in ((True, [12, 14]), (False, [13, 16])):
        feeds = {"c": np.array(choice), "x": np.float32([1, 2])}
        assert _run(data, feeds)[0].tolist() == expected


@pytest.mark.parametrize("op", ["Silu", "Square", "Rsqrt", "SquaredDifference", "NotEqual"])
def test_operators_that_onnx_lacks_are_spelled_out(op):
    graph = Graph()
    graph.inputs = [Value(n, DType.F32, (2, 3)) for n in "ab"]
    count = 2 if op in ("SquaredDifference", "NotEqual") else 1
    graph.outputs = [graph.add(op, graph.inputs[:count], name="y").output]
    infer_types(graph)
    rng = np.random.default_rng(2)
    a, b = (rng.random((2, 3), np.float32) + 0.5 for _ in range(2))
    b[0] = a[0]
    expected = {
        "Silu": a / (1 + np.exp(-a)), "Square": a * a, "Rsqrt": 1 / np.sqrt(a),
        "SquaredDifference": (a - b) ** 2, "NotEqual": a != b,
    }[op]  # fmt: skip
    got = _run(write_bytes(graph), {"a": a, "b": b})[0]
    np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_remainder_of_floats_with_the_divisors_sign():
    graph = Graph()
    graph.inputs = [Value(n, DType.F32, (6,)) for n in "ab"]
    graph.outputs = [graph.add("Mod", graph.inputs, {"fmod": 0}, name="y").output]
    infer_types(graph)
    a, b = np.float32([54.7, -54.7, 7.5, -7.5, -7.5, 6]), np.float32([0.1, 0.1, -2, -2, np.inf, 3])
    got = _run(write_bytes(graph), {"a": a, "b": b})[0]
    np.testing.assert_array_equal(got, np.mod(a, b))


def test_an_operator_that_onnx_lacks_is_named():
    graph = Graph()
    graph.inputs = [Value("x", DType.F32, (1, 3, 8, 8))]
    node = graph.add("AdaptivePool", graph.inputs, {"output_size": [2, 2]}, name="pool")
    graph.outputs = [node.output]
    infer_types(graph)
    assert why_not(node) == "ONNX has no operator AdaptivePool"
    assert node.inputs[0].readers == [node]
    silu = graph.add("Silu", node.outputs)
    assert why_not(silu) == ""
