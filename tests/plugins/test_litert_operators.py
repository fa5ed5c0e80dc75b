"""What lite-backend-litert writes, run by LiteRT, against the reference: the operators' samples."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.backends.reference import run_graph
from lite_engine.ir import DType, Graph, Value
from lite_engine.ops import infer_types

from tests.exporters.test_onnx_operators import calls
from tests.small_models import Builder

pytest.importorskip("ai_edge_litert", reason="pip install ai-edge-litert")
from lite_backend_litert import LiteRtBackend
from lite_backend_litert.writer import WRITERS

pytestmark = pytest.mark.cpu

#: Operators of ours that become several of ONNX on the way.
COMPOSED = {"Silu", "Rsqrt", "Square", "SquaredDifference", "NotEqual", "Log10"}
#: Operators without float samples: inputs, constants behind the bar.
BITS = np.array([[True, False], [False, True]])
NUMBERS = np.arange(6, dtype=np.float32).reshape(2, 3)
OTHERS = {
    "And": ([BITS, BITS[:1]], []),
    "Or": ([BITS, BITS[:1]], []),
    "Not": ([BITS], []),
    "Where": ([BITS, NUMBERS[:, :2], NUMBERS[:1, 1:]], []),
    "Expand": ([NUMBERS[:1]], [np.array([4, 2, 3])]),
    "Reshape": ([NUMBERS], [np.array([3, -1])]),
}


@pytest.fixture(scope="module")
def backend():
    return LiteRtBackend()


def _agrees(backend, graph: Graph, arrays, wanted) -> None:
    compiled = backend.compile(graph, threads=1, precision="fp32")
    for got, y in zip(compiled.run(arrays), wanted, strict=True):
        assert got.shape == y.shape and got.dtype == y.dtype
        np.testing.assert_allclose(got, y, rtol=2e-5, atol=2e-5, err_msg=str(graph))


@pytest.mark.parametrize("op", sorted({*WRITERS, *COMPOSED} - {*OTHERS}))
def test_every_operator(backend, op):
    taken, reasons = 0, set()
    for graph, feeds, wanted in calls(op):
        if why := backend.supports(graph.nodes[0]):
            reasons.add(why)
            continue
        taken += 1
        _agrees(backend, graph, [feeds[v.name] for v in graph.inputs], wanted)
    assert taken, reasons or "no samples"


@pytest.mark.parametrize("op", OTHERS)
def test_operators_without_float_samples(backend, op):
    arrays, constants = OTHERS[op]
    graph = Graph()
    graph.inputs = [Value(f"x{i}", DType.of(a), a.shape) for i, a in enumerate(arrays)]
    inputs = [*graph.inputs, *(graph.constant(a) for a in constants)]
    graph.outputs = [graph.add(op, inputs, name="layer").output]
    infer_types(graph)
    assert backend.supports(graph.nodes[0]) == ""
    _agrees(backend, graph, arrays, run_graph(graph, arrays))


def test_layouts_meet(backend, rng):
    """Channels-last and row-major values as operands of each other, shared, and as outputs."""
    b = Builder((2, 3, 8, 6))
    a = b.conv(b.x, 3, 4, 3, name="conv")
    gate = b.add("GlobalAveragePool", a, name="pool")
    scaled = b.add("Mul", a, gate, name="gate")
    other = b.add("Transpose", b.x, perm=[0, 1, 3, 2], name="turned")
    back = b.add("Reshape", other, b.ints(2, 3, 8, 6), name="shaped")
    both = b.add("Concat", scaled, back, axis=1, name="both")
    low, high = b.graph.add("Split", [both], {"axis": 1, "num_outputs": 2}, outputs=2).outputs
    rows = b.add("Add", high, b.graph.constant(rng.random((7, 1, 1), np.float32)[:1]), name="bias")
    cut = b.add("Slice", rows, b.ints(1), b.ints(7), b.ints(2), b.ints(2), name="cut")
    flat = b.add("Softmax", low, axis=2, name="columns")
    b.graph.outputs = [scaled, both, cut, flat]
    infer_types(b.graph)
    x = rng.standard_normal((2, 3, 8, 6)).astype(np.float32)
    assert [n.op for n in b.graph.nodes if backend.supports(n)] == []
    _agrees(backend, b.graph, [x], run_graph(b.graph, [x]))


def test_what_it_does_not_write_is_refused_with_the_reason(backend):
    b = Builder((1, 4, 6, 6))
    b.add("InstanceNormalization", b.x, *(b.graph.constant(np.ones(4, np.float32)),) * 2)
    b.add("AveragePool", b.x, kernel_shape=[3, 3], pads=[2] * 4)
    b.add("Cast", b.x, to=DType.F16)
    infer_types(b.graph)
    assert [backend.supports(n) for n in b.graph.nodes] == [
        "there is no TFLite form of InstanceNormalization",
        "padding that does not count in an average is written as SAME only",
        "a cast from f32 to f16 is not written",
    ]
