"""Operators without kernels, written out in those that have some. Oracle: their references, in
float64."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from lite_engine import Predictor
from lite_engine.errors import LiteError
from lite_engine.ir import DType, Graph, Node, Value
from lite_engine.ops import get_op, infer_types

RNG = np.random.default_rng(7)


def f32(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def i64(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


def angles(*shape: int) -> tuple[np.ndarray, np.ndarray]:
    turns = RNG.uniform(0, 2 * np.pi, shape)
    return np.cos(turns).astype(np.float32), np.sin(turns).astype(np.float32)


#: Operator, inputs of which the first is computed (and those that `more` names), attributes, more.
CASES: dict[str, tuple[str, list[np.ndarray | None], dict[str, Any], tuple[int, ...]]] = {
    "rotary": ("RotaryEmbedding", [f32(2, 3, 5, 8), *angles(2, 5, 4)], {}, ()),
    "computed angles": ("RotaryEmbedding", [f32(2, 3, 5, 8), *angles(2, 5, 4)], {}, (1, 2)),
    "packed heads": (
        "RotaryEmbedding", [f32(2, 5, 24), *angles(2, 5, 4)],
        {"num_heads": 3, "interleaved": 1}, (),
    ),
    "positions": (
        "RotaryEmbedding",
        [f32(1, 2, 4, 10), *angles(9, 3), np.array([[3, 0, 8, 8]])],
        {"rotary_embedding_dim": 6}, (3,),
    ),
    "interleaved part": (
        "RotaryEmbedding", [f32(1, 4, 20), *angles(9, 3), np.array([[1, 5, 0, 2]])],
        {"rotary_embedding_dim": 6, "num_heads": 2, "interleaved": 1}, (),
    ),
    "turned halves": ("TurnPairs", [f32(2, 3, 5, 8), f32(5, 8), f32(5, 8)], {}, ()),
    "turned neighbours": (
        "TurnPairs", [f32(2, 5, 6), f32(2, 1, 6), f32(2, 1, 6)], {"interleaved": 1}, (1, 2),
    ),
    "real": ("DFT", [f32(2, 12, 3, 1), None, np.array(1)], {}, ()),
    "complex": ("DFT", [f32(3, 15, 2), None, None], {}, ()),
    "half": ("DFT", [f32(3, 16, 1), None, None], {"onesided": 1}, ()),
    "odd half": ("DFT", [f32(3, 15, 1), None, np.array(-2)], {"onesided": 1}, ()),
    "cut off": ("DFT", [f32(20, 3, 1), np.array(13), np.array(0)], {"onesided": 1}, ()),
    "padded": ("DFT", [f32(3, 7, 2), np.array(13), None], {}, ()),
    "inverse": ("DFT", [f32(3, 12, 2), None, None], {"inverse": 1}, ()),
    "inverse of reals": ("DFT", [f32(3, 12, 1), None, None], {"inverse": 1}, ()),
    "half inverse": ("DFT", [f32(3, 9, 2), None, None], {"inverse": 1, "onesided": 1}, ()),
    "odd half inverse": (
        "DFT", [f32(3, 9, 2), np.array(17), None], {"inverse": 1, "onesided": 1}, (),
    ),
    "short half inverse": (
        "DFT", [f32(2, 9, 3, 2), np.array(10), np.array(1)], {"inverse": 1, "onesided": 1}, (),
    ),
    "frames": ("STFT", [f32(2, 60, 1), np.array(7), f32(16), np.array(16)], {}, ()),
    "whole frames": ("STFT", [f32(2, 60, 1), np.array(5), None, np.array(9)], {"onesided": 0}, ()),
    "frames of rank 2": ("STFT", [f32(2, 60), np.array(7), f32(16), np.array(16)], {}, ()),
    "complex frames": ("STFT", [f32(1, 40, 2), np.array(4), f32(8), None], {"onesided": 0}, ()),
    "columns apart": (
        "Col2Im", [f32(2, 3 * 6, 20), i64(8, 15), i64(2, 3)], {"strides": [2, 3]}, (),
    ),
    "columns that meet": (
        "Col2Im", [f32(2, 3 * 9, 48), i64(6, 8), i64(3, 3)], {"pads": [0, 1, 2, 1]}, (),
    ),
    "columns with gaps": (
        "Col2Im", [f32(1, 2 * 4, 15), i64(10, 11), i64(2, 2)],
        {"strides": [3, 2], "dilations": [2, 3], "pads": [1, 0, 0, 1]}, (),
    ),
    "columns apart with gaps": (
        "Col2Im", [f32(2, 3 * 2, 2), i64(6), i64(2)], {"strides": [3], "dilations": [2]}, (),
    ),
    "columns of a line": ("Col2Im", [f32(2, 3 * 4, 5), i64(12), i64(4)], {"strides": [2]}, ()),
}  # fmt: skip


def graph_of(name: str) -> tuple[Graph, dict[str, np.ndarray]]:
    op, given, attrs, more = CASES[name]
    graph, values, feeds = Graph("g"), [], {}
    for i, array in enumerate(given):
        if array is None:
            values.append(None)
        elif i == 0 or i in more:
            values.append(Value(f"x{i}", DType.of(array), array.shape))
            graph.inputs.append(values[-1])
            feeds[f"x{i}"] = array
        else:
            values.append(Value(f"c{i}", DType.of(array), const=array))
    node = Node(op, values, [Value("y")], attrs, name="node")
    graph.nodes, graph.outputs = [node], [node.output]
    infer_types(graph)
    return graph, feeds


def exact(name: str) -> np.ndarray:
    op, given, attrs, _ = CASES[name]
    wide: Sequence[np.ndarray | None] = [
        x.astype(np.float64) if x is not None and x.dtype.kind == "f" else x for x in given
    ]
    return get_op(op).run(
        Node(
            op,
            [None if x is None else Value("x", DType.of(x), x.shape) for x in wide],
            [Value("y")],
            attrs,
        ),
        wide,
    )[0]


@pytest.mark.cpu
@pytest.mark.parametrize("name", CASES)
def test_native_kernels_compute_it(name):
    graph, feeds = graph_of(name)
    predictor = Predictor(graph, "x86", threads=2)
    assert {step.backend for step in predictor.plan().steps} == {"cpu"}
    (got,), want = predictor.run(feeds).values(), exact(name)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 * np.abs(want).max())


@pytest.mark.opencl
@pytest.mark.parametrize("name", CASES)
def test_opencl_computes_it(name):
    graph, feeds = graph_of(name)
    predictor = Predictor(graph, "opencl")
    assert "reference" not in {step.backend for step in predictor.plan().steps}
    (got,), want = predictor.run(feeds).values(), exact(name)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 * np.abs(want).max())


#: As CASES, with numbers that do not fit: the reference says why.
MISFITS: dict[str, tuple[str, list[np.ndarray | None], dict[str, Any]]] = {
    "no step": ("STFT", [f32(1, 20, 1), np.array(0), None, np.array(8)], {}),
    "a frame that is too long": ("STFT", [f32(1, 20, 1), np.array(4), None, np.array(28)], {}),
    "no heads": ("RotaryEmbedding", [f32(1, 4, 24), *angles(1, 4, 4)], {}),
    "angles of others": ("RotaryEmbedding", [f32(1, 3, 4, 8), *angles(1, 4, 3)], {}),
    "heads of text": (
        "RotaryEmbedding", [f32(1, 4, 24), *angles(1, 4, 4)], {"num_heads": "x"},
    ),
    "no length": ("DFT", [f32(2, 8, 1), np.array(0), None], {}),
    "strides of text": ("Col2Im", [f32(1, 4, 4), i64(4, 4), i64(2, 2)], {"strides": "ab"}),
    "no stride": ("Col2Im", [f32(1, 4, 4), i64(4, 4), i64(2, 2)], {"strides": [0, 2]}),
    "other columns": ("Col2Im", [f32(1, 4, 5), i64(4, 4), i64(2, 2)], {"strides": [2, 2]}),
    "part of a block": ("Col2Im", [f32(1, 6, 4), i64(4, 4), i64(2, 2)], {"strides": [2, 2]}),
}  # fmt: skip


@pytest.mark.parametrize("name", MISFITS)
def test_what_does_not_fit_is_told(name):
    op, given, attrs = MISFITS[name]
    values = [None if a is None else Value(f"c{i}", DType.of(a), const=a)
              for i, a in enumerate(given)]  # fmt: skip
    assert given[0] is not None
    values[0] = Value("x", DType.F32, given[0].shape)
    graph = Graph("g", [values[0]])
    graph.nodes = [Node(op, values, [Value("y")], attrs, name="node")]
    graph.outputs = [graph.nodes[0].output]
    with pytest.raises(LiteError):
        infer_types(graph)
        Predictor(graph, "x86").run({"x": given[0]})


@pytest.mark.cpu
def test_no_zeros_are_multiplied():
    """Exporters give a real tensor an imaginary part of zeros where they want a complex one."""
    x = f32(4, 12, 1)
    given, zero = Value("x", DType.F32, x.shape), Value("zero", DType.F32, const=np.zeros_like(x))
    joined = Node("Concat", [given, zero], [Value("z")], {"axis": -1}, name="join")
    turned = Node("DFT", [joined.output, None, None], [Value("y")], {}, name="turn")
    graph = Graph("g", [given])
    graph.nodes, graph.outputs = [joined, turned], [turned.output]
    infer_types(graph)
    predictor = Predictor(graph, "x86")
    assert "Concat" not in {step.op for step in predictor.plan().steps}
    (got,) = predictor.run({"x": x}).values()
    want = np.fft.fft(x[..., 0].astype(np.float64))
    np.testing.assert_allclose(got, np.stack([want.real, want.imag], -1), rtol=0, atol=1e-4)


@pytest.mark.cpu
@pytest.mark.opencl
@pytest.mark.parametrize("name", ["half", "frames"])
@pytest.mark.parametrize("backend, precision", [("x86", "bf16"), ("opencl", "fp16")])
def test_a_spectrum_is_not_computed_in_16_bits(name, backend, precision):
    graph, feeds = graph_of(name)
    predictor = Predictor(graph, backend, precision=precision)
    assert "reference" not in {step.backend for step in predictor.plan().steps}
    (got,), want = predictor.run(feeds).values(), exact(name)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-6 * np.abs(want).max())


def test_a_long_transform_stays_with_numpy():
    x = np.zeros((1, 5000, 1), np.float32)
    given = Value("x", DType.F32, x.shape)
    node = Node("DFT", [given, None, None], [Value("y")], name="node")
    graph = Graph("g", [given])
    graph.nodes, graph.outputs = [node], [node.output]
    infer_types(graph)
    plan = Predictor(graph, "x86").plan()
    assert [(s.op, s.backend) for s in plan.steps] == [("DFT", "reference")]
