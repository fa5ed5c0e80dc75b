"""Rotary positions in the spellings of exporters, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from lite_engine import Predictor
from lite_engine.importers.onnx import read_bytes
from lite_engine.ir import Graph
from lite_engine.passes.pipeline import optimize_graph
from lite_engine.plan import make_plan
from onnx import TensorProto, helper, numpy_helper

onnxruntime = pytest.importorskip("onnxruntime", reason="pip install onnxruntime")

RNG = np.random.default_rng(3)
HEADS, ROWS, SIZE = 3, 5, 8


class Network:
    """Nodes of a model with an input x, and its constants."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape, self.nodes, self.constants = shape, [], {}
        self.computed: dict[str, tuple[int, ...]] = {"x": shape}

    def __call__(self, op: str, *inputs: str, outputs: int = 1, **attrs: Any) -> Any:
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, **attrs))
        return names[0] if outputs == 1 else names

    def constant(self, array: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(array)
        return name

    def cut(self, x: str, begin: int, end: int, axis: int, step: int = 1) -> str:
        numbers = (np.array([n]) for n in (begin, end, axis, step))
        return self("Slice", x, *map(self.constant, numbers))

    def angles(self, *shape: int) -> tuple[str, str]:
        turns = RNG.uniform(0, 2 * np.pi, shape)
        return tuple(self.constant(f(turns).astype(np.float32)) for f in (np.cos, np.sin))

    def model(self, y: str) -> bytes:
        tensor = helper.make_tensor_value_info
        self.nodes.append(helper.make_node("Identity", [y], ["y"]))
        graph = helper.make_graph(
            self.nodes, "g",
            [tensor(n, TensorProto.FLOAT, s) for n, s in self.computed.items()],
            [tensor("y", TensorProto.FLOAT, None)],
            [numpy_helper.from_array(v, k) for k, v in self.constants.items()],
        )  # fmt: skip
        return onnx.helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9
        ).SerializeToString()


def halves(n: Network, x: str, size: int = SIZE) -> str:
    """transformers: the second half, negated, and the first."""
    a, b = n.cut(x, 0, size // 2, -1), n.cut(x, size // 2, np.iinfo(np.int64).max, -1)
    return n("Concat", n("Neg", b), a, axis=-1)


def parts(n: Network, x: str) -> str:
    """timm's DINOv3: the same with chunks."""
    a, b = n("Split", x, n.constant(np.array([SIZE // 2] * 2)), outputs=2, axis=-1)
    return n("Concat", n("Neg", b), a, axis=-1)


def neighbours(n: Network, x: str) -> str:
    """timm's EVA, RoFormer, GPT-J: each second number, negated, before the one ahead of it."""
    last = np.iinfo(np.int64).max
    pair = n("Neg", n.cut(x, 1, last, -1, 2)), n.cut(x, 0, last, -1, 2)
    pair = [n("Unsqueeze", v, n.constant(np.array([-1]))) for v in pair]
    return n("Reshape", n("Concat", *pair, axis=-1), n.constant(np.array(n.shape)))


SPELLINGS = {"halves": halves, "parts": parts, "neighbours": neighbours}


def summed(n: Network, x: str, turned: str, cos: str, sin: str, swapped: bool = False) -> str:
    factors = ((x, cos), (turned, sin))
    terms = [n("Mul", *(pair[::-1] if swapped else pair)) for pair in factors]
    return n("Add", *(terms[::-1] if swapped else terms))


def check(data: bytes, shapes: dict[str, tuple[int, ...]], count: int = 1) -> Graph:
    """The optimised graph, which has so many TurnPairs and computes what onnxruntime does."""
    graph = read_bytes(data)
    optimised = optimize_graph(graph)
    assert [n.op for n in optimised.nodes].count("TurnPairs") == count
    feeds = {k: RNG.standard_normal(s).astype(np.float32) for k, s in shapes.items()}
    (want,) = onnxruntime.InferenceSession(data).run(None, feeds)
    for backend in ("x86", "opencl"):
        (got,) = Predictor(optimised, backend).run(feeds).values()
        np.testing.assert_allclose(got, want, rtol=0, atol=2e-6)  # three roundings of numbers to 4
    return optimised


@pytest.mark.cpu
@pytest.mark.opencl
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("shape", [(ROWS, SIZE), (2, ROWS, SIZE), (2, HEADS, ROWS, SIZE)])
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_spellings(spelling: str, shape: tuple[int, ...], swapped: bool) -> None:
    n = Network(shape)
    turned = SPELLINGS[spelling](n, "x")
    y = summed(n, "x", turned, *n.angles(ROWS, SIZE), swapped)
    graph = check(n.model(y), n.computed)
    plan = make_plan(graph, "opencl")
    assert [s.kernel for s in plan.steps if s.op != "Copy"] == ["turn_pairs"]


@pytest.mark.cpu
@pytest.mark.opencl
@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("rows", [ROWS, 1])
def test_class_tokens_are_not_turned(spelling: str, rows: int) -> None:
    n = Network((2, HEADS, ROWS, SIZE))
    n.computed = {"x": (2, HEADS, ROWS + 2, SIZE)}
    head, tail = n.cut("x", 0, 2, 2), n.cut("x", 2, ROWS + 2, 2)
    y = summed(n, tail, SPELLINGS[spelling](n, tail), *n.angles(rows, SIZE))
    graph = check(n.model(n("Concat", head, y, axis=2)), n.computed)
    assert len([v for v in graph.nodes if v.op != "Identity"]) == 1


# Heads come first behind a Transpose, which goes to where it meets another.
@pytest.mark.cpu
@pytest.mark.opencl
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_transpose_passes(spelling: str) -> None:
    n = Network((2, HEADS, ROWS, SIZE))
    n.computed = {"x": (2, ROWS, HEADS, SIZE)}
    x = n("Transpose", "x", perm=[0, 2, 1, 3])
    y = summed(n, x, SPELLINGS[spelling](n, x), *n.angles(1, 1, ROWS, SIZE))
    graph = check(n.model(n("Transpose", y, perm=[0, 2, 1, 3])), n.computed)
    assert "Transpose" not in [v.op for v in graph.nodes]


# Rows of class tokens, and a Transpose, give each layer angles of its own; they are the same.
@pytest.mark.cpu
@pytest.mark.opencl
def test_layers_have_their_angles_in_common() -> None:
    n = Network((2, HEADS, ROWS, SIZE))
    n.computed = {"x": (2, ROWS + 2, HEADS, SIZE)}
    angles, y = n.angles(ROWS, SIZE), n("Transpose", "x", perm=[0, 2, 1, 3])
    for _ in range(2):
        head, tail = n.cut(y, 0, 2, 2), n.cut(y, 2, ROWS + 2, 2)
        y = n("Concat", head, summed(n, tail, halves(n, tail), *angles), axis=2)
    graph = check(n.model(n("Transpose", y, perm=[0, 2, 1, 3])), n.computed, count=2)
    first, second = (v for v in graph.nodes if v.op == "TurnPairs")
    assert first.inputs[1:] == second.inputs[1:]


@pytest.mark.cpu
@pytest.mark.opencl
def test_a_transpose_of_what_is_turned_stays() -> None:
    n = Network((2, ROWS, SIZE))
    n.computed = {"x": (2, SIZE, ROWS)}
    x = n("Transpose", "x", perm=[0, 2, 1])
    graph = check(n.model(summed(n, x, halves(n, x), *n.angles(ROWS, SIZE))), n.computed)
    assert [v.op for v in graph.nodes][:2] == ["Transpose", "TurnPairs"]


def wrong_order(n: Network) -> str:
    a, b = n.cut("x", 0, SIZE // 2, -1), n.cut("x", SIZE // 2, SIZE, -1)
    return summed(n, "x", n("Concat", n("Neg", a), b, axis=-1), *n.angles(ROWS, SIZE))


def unequal(n: Network) -> str:
    a, b = n.cut("x", 0, 3, -1), n.cut("x", 3, SIZE, -1)
    return summed(n, "x", n("Concat", n("Neg", b), a, axis=-1), *n.angles(ROWS, SIZE))


def another_axis(n: Network) -> str:
    a, b = n.cut("x", 0, 1, 0), n.cut("x", 1, 2, 0)
    return summed(n, "x", n("Concat", n("Neg", b), a, axis=0), *n.angles(ROWS, SIZE))


def another_value(n: Network) -> str:
    return summed(n, n("Abs", "x"), halves(n, "x"), *n.angles(ROWS, SIZE))


def computed_angles(n: Network) -> str:
    n.computed["t"] = (ROWS, SIZE)
    return summed(n, "x", halves(n, "x"), n("Cos", "t"), n("Sin", "t"))


def one_angle_a_row(n: Network) -> str:
    return summed(n, "x", halves(n, "x"), *n.angles(ROWS, 1))


def more_rows_of_angles(n: Network) -> str:
    """x repeats, so that the sum has more rows than x."""
    n.computed = {"x": (2, 1, SIZE)}
    return summed(n, "x", halves(n, "x"), *n.angles(ROWS, SIZE))


def other_axes_of_slices(n: Network) -> str:
    """Without axes, a Slice with steps is of the first one, whose halves here are as long."""
    n.computed = {"x": (SIZE, SIZE)}
    half, ones = SIZE // 2, n.constant(np.array([1]))
    ends = [n.constant(np.array([k])) for k in (0, half, SIZE)]
    a, b = (n("Slice", "x", ends[i], ends[i + 1], "", ones) for i in (0, 1))
    return summed(n, "x", n("Concat", n("Neg", b), a, axis=0), *n.angles(SIZE, SIZE))


def more_axes_of_angles(n: Network) -> str:
    return summed(n, "x", halves(n, "x"), *n.angles(3, 1, 1, SIZE))


def pairs_in_another_order(n: Network) -> str:
    last = np.iinfo(np.int64).max
    pair = n.cut("x", 0, last, -1, 2), n("Neg", n.cut("x", 1, last, -1, 2))
    pair = [n("Unsqueeze", v, n.constant(np.array([-1]))) for v in pair]
    view = n("Reshape", n("Concat", *pair, axis=-1), n.constant(np.array(n.shape)))
    return summed(n, "x", view, *n.angles(ROWS, SIZE))


@pytest.mark.cpu
@pytest.mark.opencl
@pytest.mark.parametrize(
    "other",
    [wrong_order, unequal, another_axis, another_value, computed_angles, one_angle_a_row,
     more_rows_of_angles, more_axes_of_angles, other_axes_of_slices, pairs_in_another_order],
)  # fmt: skip
def test_what_only_looks_like_it(other) -> None:
    n = Network((2, ROWS, SIZE))
    check(n.model(other(n)), n.computed, count=0)


# What a device refuses, the CPU computes.
@pytest.mark.opencl
def test_a_refused_kernel() -> None:
    n = Network((2, ROWS, SIZE))
    graph = check(n.model(summed(n, "x", halves(n, "x"), *n.angles(ROWS, SIZE))), n.computed)
    (node,) = (v for v in graph.nodes if v.op == "TurnPairs")
    plan = make_plan(graph, "opencl", refused={node.name: "planted"})
    assert [s.kernel for s in plan.steps if s.op == "TurnPairs"] == ["f32_turn_pairs"]
