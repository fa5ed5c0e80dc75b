"""Comparison of graphs with branches, and with layers that are constants at these sizes."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine import Predictor
from lite_engine.backends.cpu.native import target
from lite_engine.compare import Side, compare
from lite_engine.ir import DType, Graph, Value
from lite_workbench.quantizing import FastRun

from tests.small_models import Builder

pytestmark = pytest.mark.cpu


def branch(b: Builder, outside: Value, name: str, op: str) -> Graph:
    """One layer on a value from outside."""
    graph = Graph(name)
    graph.outputs = [graph.add(op, [outside], name=name).output]
    return graph


def choosing() -> Graph:
    """An If, whose branches read a value of the graph around them."""
    b = Builder((1, 4, 8, 8), "choosing")
    y = b.conv(b.x, 4, 6, 3, name="conv")
    high = b.add("Greater", b.add("ReduceSum", y, keepdims=0), b.scalar(1e6))
    then, other = branch(b, y, "then", "Relu"), branch(b, y, "other", "Sigmoid")
    made = b.add("If", high, name="choice", then_branch=then, else_branch=other)
    return b.done(b.add("Neg", made, name="out"))


def x_of(graph: Graph) -> dict[str, np.ndarray]:
    shape = graph.inputs[0].shape
    return {"x": np.random.default_rng(0).standard_normal(shape).astype(np.float32)}


def test_a_branch_that_is_wrong_is_named() -> None:
    graph = choosing()
    wrong = Predictor(graph, target(), faults={"choice": "drop_last_column"})
    right = Predictor(graph, "reference")
    for a, b, side in ((right, wrong, "candidate"), (wrong, right, "baseline")):
        made = compare(Side(a), Side(b), x_of(graph))
        assert not made.agrees and made.first_divergence["name"] == "choice"
        assert made.finding.side == side


class Off(Side):
    """A run that is wrong by 1 in these values."""

    wrong: tuple[str, ...] = ()

    def values(self, feeds, names):
        found = dict(super().values(feeds, names))
        return {name: x + (name in self.wrong) for name, x in found.items()}

    def at(self, feeds):
        made = Off(super().at(feeds).predictor, self.label)
        made.wrong = self.wrong
        return made


def off(graph: Graph, backend: str, *wrong: str) -> Side:
    side = Off(Predictor(graph, backend), "off")
    side.wrong = wrong
    return side


def two_results() -> Graph:
    """An If that gives two values, of which the second is computed on."""
    b = Builder((1, 4), "two")
    then, other = Graph("then"), Graph("other")
    for inner, ops in ((then, ("Neg", "Exp")), (other, ("Relu", "Abs"))):
        inner.outputs = [inner.add(op, [b.x], name=f"{inner.name}_{op}").output for op in ops]
    high = b.add("Greater", b.add("ReduceSum", b.x, keepdims=0), b.scalar(0))
    attrs = {"then_branch": then, "else_branch": other}
    y, z = b.graph.add("If", [high], attrs, outputs=["y", "z"], name="choice").outputs
    return b.done(y, b.add("Neg", z, name="o"))


@pytest.mark.parametrize("wrong", [("y",), ("z", "o")])
def test_each_output_of_a_branch_is_judged_by_its_own_numbers(wrong) -> None:
    graph, x = two_results(), {"x": np.array([[1, 2, 3, 4]], np.float32)}
    right = Side(Predictor(graph, "reference"))
    for a, b, side in (
        (right, off(graph, target(), *wrong), "candidate"),
        (off(graph, target(), *wrong), right, "baseline"),
    ):
        made = compare(a, b, x)
        row = next(x for x in made.layers if not x.within)
        assert (row.name, row.value_baseline) == ("choice", wrong[0]) and not made.agrees
        assert made.finding.side == side


def test_the_baseline_is_to_blame_for_its_second_output() -> None:
    """What is wrong are numbers that a plain layer gives beside others, which are right."""
    b = Builder((1, 4), "cut")
    y, z = b.graph.add("Split", [b.x], {"axis": 1}, outputs=["y", "z"], name="split").outputs
    graph, x = b.done(y, z), {"x": np.array([[1, 2, 3, 4]], np.float32)}
    right = Side(Predictor(graph, "reference"))
    found = compare(off(graph, target(), "z"), right, x).finding
    assert (found.kind, found.layer, found.side) == ("layer_fails", "split", "baseline")
    distance = np.linalg.norm([1, 1]) / np.linalg.norm([3, 4])
    assert found.reference_error == pytest.approx(distance, rel=1e-6)
    assert compare(right, off(graph, target(), "z"), x).finding.side != "baseline"


def test_a_branch_is_not_to_blame_for_its_inputs() -> None:
    """It sorts numbers that a wrong layer has made."""
    b = Builder((1, 4, 8, 8), "sorting")
    y = b.conv(b.x, 4, 6, 3, name="conv")
    high = b.add("Less", b.add("ReduceSum", y, keepdims=0), b.scalar(1e6))
    inner = branch(b, y, "then", "Relu"), branch(b, y, "other", "Sigmoid")
    made = b.add("If", high, name="choice", then_branch=inner[0], else_branch=inner[1])
    graph = b.done(b.add("Neg", made, name="out"))
    wrong = Predictor(graph, target(), faults={"conv": "swap_channels"})
    found = compare(Side(Predictor(graph, "reference")), Side(wrong), x_of(graph))
    rows = {row.name: row for row in found.layers}
    assert found.first_divergence["name"] == "conv" and found.finding.also_failing == 0
    assert rows["choice"].state == "propagated" and rows["choice"].isolated["rel_l2"] == 0


def looping(weights: np.ndarray) -> Graph:
    """A Loop of three steps, y = tanh(y W), around which are an addition and a Softmax."""
    b = Builder((2, 4), "looping")
    body = Graph("body")
    step, go, y = Value("i", DType.I64, ()), Value("go", DType.BOOL, ()), Value("y", DType.F32)
    body.inputs = [step, go, y]
    product = body.add("MatMul", [y, body.constant(weights)], name="product").output
    body.outputs = [go, body.add("Tanh", [product], name="tanh").output]
    y = b.add("Add", b.x, b.scalar(0.5), name="shifted")
    made = b.graph.add("Loop", [b.scalar_int(3), None, y], {"body": body}, name="loop").output
    return b.done(b.add("Softmax", made, name="soft"))


@pytest.mark.parametrize("wrong", [3.0, np.nan])
def test_a_body_with_another_weight_is_named(wrong) -> None:
    """Of two models, each layer with branches is right for what it holds: what differs is that."""
    good = np.random.default_rng(1).standard_normal((4, 4)).astype(np.float32)
    bad = good.copy()
    bad[1, 2] = wrong
    x = {"x": np.random.default_rng(2).standard_normal((2, 4)).astype(np.float32)}
    sides = [Side(Predictor(looping(w), target()), name) for w, name in ((good, "a"), (bad, "b"))]
    made = compare(*sides, x)
    found = made.finding
    assert (found.kind, found.layer, found.side) == ("layer_fails", "loop", "candidate")
    y = {}
    for name, w in (("a", good), ("b", bad)):
        y[name] = x["x"] + np.float32(0.5)
        for _ in range(3):
            y[name] = np.tanh(y[name] @ w)
    if np.isfinite(wrong):
        distance = np.linalg.norm(y["a"] - y["b"]) / np.linalg.norm(y["a"])
        assert found.error == pytest.approx(distance, rel=1e-4)
    else:
        count = int(np.isnan(y["b"]).sum())
        assert found.not_finite == {"candidate": count}
        other = compare(*sides[::-1], x)
        assert (other.finding.layer, other.finding.side) == ("loop", "baseline")
        assert other.finding.not_finite == {"baseline": count}
        assert other.verdict.endswith("b is the one that is wrong")


@pytest.mark.parametrize("isolated", [True, False])
def test_lists_of_other_lengths_are_rows_like_others(isolated) -> None:
    """A layer whose numbers differ lets more of them through: what follows has another shape, and
    is not to blame."""
    b = Builder((1, 4, 8, 8), "listing")
    y = b.conv(b.x, 4, 6, 3, name="conv")
    places = b.add("NonZero", b.add("Greater", y, b.scalar(0.5), name="over"), name="places")
    found = b.add("GatherND", y, b.add("Transpose", places, perm=[1, 0], name="turned"), name="y")
    graph = b.done(b.add("ReduceMax", found, keepdims=0, name="most"))
    wrong = Predictor(graph, target(), faults={"conv": "forget_bias"})
    made = compare(Side(Predictor(graph, "reference")), Side(wrong), x_of(graph), isolated=isolated)
    assert not made.agrees and made.first_divergence["name"] == "conv"
    (row,) = (x for x in made.layers if x.name == "places")
    assert row.rel_l2 == np.inf and row.within is isolated
    if isolated:
        assert row.state == "propagated" and row.isolated["rel_l2"] == 0


def folding(batch: int | str = 2) -> Graph:
    """A value that these sizes make a constant; an If that they decide."""
    b = Builder((batch, 4, 6), "folding")
    shape = b.add("Shape", b.x, name="shape")
    zeros = b.graph.add("ConstantOfShape", [shape], {"value": np.ones(1, np.float32)}, name="ones")
    y = b.add("Add", b.x, zeros.output, name="sum")
    rank = b.add("Size", shape, name="rank")
    flat = b.add("Equal", rank, b.graph.constant(np.array(3)), name="flat")
    inner = branch(b, y, "then", "Relu"), branch(b, y, "other", "Neg")
    y = b.add("If", flat, name="choice", then_branch=inner[0], else_branch=inner[1])
    return b.done(b.add("MatMul", y, b.weights(6, 5), name="product"))


@pytest.mark.parametrize("batch", [2, "N"])
def test_layers_that_are_constants_here_are_not_asked_for(batch) -> None:
    graph, x = folding(batch), {"x": np.ones((2, 4, 6), np.float32)}
    made = compare(Side(Predictor(graph, "reference")), Side(Predictor(graph, target())), x)
    assert made.agrees and {row.name for row in made.layers} >= {"sum", "product"}


def test_a_run_gives_the_values_that_it_makes_and_the_constants() -> None:
    graph, run = folding("N"), FastRun(target())
    names = [v.name for n in graph.nodes for v in n.outputs]
    for batch in (2, 2, 3):
        found = run(graph, {"x": np.ones((batch, 4, 6), np.float32)}, names)
        assert {"sum", "product"} <= found.keys()
        assert DType.of(found["sum"]) is DType.F32
        assert found["shape"].tolist() == [batch, 4, 6]
        assert found["rank"] == 3 and found["flat"] == True  # noqa: E712
        np.testing.assert_array_equal(found["ones"], np.ones((batch, 4, 6)))
