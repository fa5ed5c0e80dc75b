"""Operators of the com.microsoft domain and integer operators against onnxruntime itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lite_engine.backends.reference import run_graph
from lite_engine.importers import onnx as importer
from lite_engine.ir import DType, Graph, Value
from lite_engine.ir.verify import verify
from lite_engine.plan import make_plan
from lite_engine.runtime.execute import Execution

onnx = pytest.importorskip("onnx", reason="pip install onnx")
ort = pytest.importorskip("onnxruntime", reason="pip install onnxruntime")
from onnx import helper  # noqa: E402

RNG = np.random.default_rng(5)


def u8(*shape: int) -> np.ndarray:
    return RNG.integers(0, 256, shape).astype(np.uint8)


def i8(*shape: int) -> np.ndarray:
    """Weights, of 7 bits: without VNNI onnxruntime sums two of their products in 16 bits, which
    saturates for larger ones."""
    return RNG.integers(-64, 65, shape).astype(np.int8)


def f32(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def s(value: float) -> np.ndarray:
    return np.float32(value)


def z(value: int, dtype: Any = np.uint8) -> np.ndarray:
    return np.array(value, dtype)


def both(
    op: str, inputs: list[Any], outputs: int | tuple[str, ...], domain: str, **attrs: Any
) -> list[tuple[Any, Any]]:
    """(ours, onnxruntime's) for each output of one node; the name of one that it does not give is
    empty."""
    made = tuple(f"o{i}" for i in range(outputs)) if isinstance(outputs, int) else outputs
    given = {f"i{i}": np.asarray(a) for i, a in enumerate(inputs) if a is not None}
    names = [f"i{i}" if a is not None else "" for i, a in enumerate(inputs)]
    node = helper.make_node(op, names, made, domain=domain, **attrs)
    code = helper.np_dtype_to_tensor_dtype
    graph = helper.make_graph(
        [node],
        op,
        [helper.make_tensor_value_info(k, code(a.dtype), a.shape) for k, a in given.items()],
        [helper.make_empty_tensor_value_info(name) for name in made if name],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    theirs = ort.InferenceSession(model, options, ["CPUExecutionProvider"]).run(None, given)
    read = importer.read_bytes(model)
    verify(read)
    return list(zip(run_graph(read, list(given.values())), theirs, strict=True))


MS = "com.microsoft"
X, X2 = u8(2, 6, 9, 8), u8(2, 6, 9, 8)
Q = (s(0.02), z(120))
#: operator, inputs, attributes, domain, how many steps a quantised result may differ
CASES = {
    "QLinearAdd": ([X, *Q, X2, s(0.03), z(99), s(0.05), z(130)], {}, MS, 0),
    "QLinearMul": ([X, *Q, u8(1, 6, 1, 1), s(0.03), z(99), s(0.05), z(130)], {}, MS, 1),
    "QLinearLeakyRelu": ([X, *Q, s(0.015), z(20)], {"alpha": 0.1}, MS, 1),
    "QLinearSigmoid": ([X, *Q, s(1 / 256), z(0)], {}, MS, 1),
    "QLinearSoftmax": (
        [u8(3, 17), s(0.05), z(90), s(1 / 256), z(0)], {"axis": -1, "opset": 13}, MS, 1,
    ),
    "QLinearGlobalAveragePool": ([X, *Q, s(0.011), z(100)], {}, MS, 1),
    "QLinearAveragePool": (
        [X, *Q, s(0.018), z(110)],
        {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
        MS,
        1,
    ),
    "QLinearConcat": ([s(0.04), z(128), X, *Q, X2, s(0.07), z(90)], {"axis": 1}, MS, 0),
    "QLinearConv": (
        [X, *Q, i8(8, 3, 3, 3), np.linspace(0.01, 0.03, 8, dtype=np.float32), np.zeros(8, np.int8),
         s(0.4), z(128), RNG.integers(-900, 900, 8).astype(np.int32)],
        {"group": 2, "pads": [1, 1, 1, 1], "strides": [2, 1]},
        "",
        0,
    ),
    "QLinearMatMul": (
        [u8(3, 4, 20), *Q, i8(20, 7), s(0.01), z(0, np.int8), s(0.06), z(128)], {}, "", 0,
    ),
    "QGemm": (
        [u8(5, 20), *Q, i8(7, 20), s(0.01), z(0, np.int8),
         RNG.integers(-500, 500, 7).astype(np.int32), s(0.06), z(128)],
        {"transB": 1},
        MS,
        0,
    ),
    "ConvInteger": ([X, i8(4, 6, 3, 3), z(120), z(0, np.int8)], {"pads": [1, 1, 1, 1]}, "", 0),
    "MatMulInteger": ([u8(3, 5, 20), i8(20, 7), z(120), z(0, np.int8)], {}, "", 0),
}  # fmt: skip
FLOATS = {
    "MatMulIntegerToFloat": (
        [u8(4, 20), i8(20, 7), s(0.02), s(0.01), z(120), z(0, np.int8), f32(7)], {}, 1,
    ),
    "DynamicQuantizeMatMul": ([f32(4, 20), i8(20, 7), s(0.01), z(0, np.int8), f32(7)], {}, 1),
    "SkipLayerNormalization": (
        [f32(2, 5, 16), f32(2, 5, 16), f32(16), f32(16), f32(16)], {"epsilon": 1e-5}, 1,
    ),
    "BiasGelu": ([f32(3, 16), f32(16)], {}, 1),
    "FastGelu": ([f32(3, 16), f32(16)], {}, 1),
    "QuickGelu": ([f32(3, 16)], {"alpha": 1.702}, 1),
    "FusedGemm": (
        [f32(3, 16), f32(16, 5), f32(5)], {"activation": "LeakyRelu", "activation_alpha": 0.2}, 1,
    ),
    "FusedConv": (
        [f32(1, 4, 6, 6), f32(4, 4, 3, 3), f32(4), f32(1, 4, 4, 4)], {"activation": "Relu"}, 1,
    ),
    "Inverse": ([f32(3, 4, 4) + 4 * np.eye(4, dtype=np.float32)], {}, 1),
}  # fmt: skip


@pytest.mark.parametrize("op", CASES)
def test_integers(op: str) -> None:
    inputs, attrs, domain, steps = CASES[op]
    for got, wanted in both(op, inputs, 1, domain, **attrs):
        assert got.dtype == wanted.dtype and got.shape == wanted.shape
        apart = np.abs(got.astype(np.int64) - wanted.astype(np.int64))
        assert apart.max() <= steps
        assert (apart > 0).mean() <= 0.01


@pytest.mark.cpu
def test_integer_product_of_a_vector() -> None:
    """Kernels take matrices: the plan leaves it to the reference."""
    x, *constants = u8(20), *Q, i8(20, 7), s(0.01), z(0, np.int8), s(0.06), z(128)
    graph = Graph("g")
    graph.inputs = [Value("x", DType.U8, x.shape)]
    inputs = [*graph.inputs, *(graph.constant(c) for c in constants)]
    graph.outputs = [graph.add("QLinearMatMul", inputs).output]
    (got,) = Execution(make_plan(graph, "cpu"), threads=1).run([x])
    ((_, wanted),) = both("QLinearMatMul", [x, *constants], 1, "")
    np.testing.assert_array_equal(got, wanted, strict=True)


def test_one_hot_of_floats() -> None:
    """Cut to whole numbers, negative ones counted from the end."""
    x = np.float32([0.2, -0.4, 1.7, -1.2, 2.9, 3.5, -3.9, -0.9])
    inputs = [x, np.float32([3]), np.float32([0, 1])]
    ((got, wanted),) = both("OneHot", inputs, 1, "", axis=-1)
    np.testing.assert_array_equal(got, wanted, strict=True)
    assert wanted[1].tolist() == [1, 0, 0]


@pytest.mark.parametrize("op", FLOATS)
def test_floats(op: str) -> None:
    inputs, attrs, outputs = FLOATS[op]
    for got, wanted in both(op, inputs, outputs, MS, **attrs):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)
