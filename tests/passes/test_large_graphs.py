"""Folding looks at each node a few times, not at all of them for each that folds."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.errors import ShapeError
from lite_engine.importers.onnx import read_bytes
from lite_engine.ir import DType, Graph, Journal, Node, Value, to_text
from lite_engine.ops import fold_constants, infer_types, specialise
from lite_engine.passes import PIPELINE, optimize_graph, rule
from lite_engine.passes._core import FunctionPass, P
from lite_engine.passes.drop_identity import drop_identity
from lite_engine.passes.recompose_activations import recompose_activations

LAYERS = 200


@pytest.mark.parametrize("work", [fold_constants, specialise])
def test_a_long_graph_is_not_searched_for_each_folded_node(work, monkeypatch):
    """As exporters write windows: each layer with size arithmetic that folds."""
    graph = Graph("chain")
    x = Value("x", DType.F32, (2, 3))
    graph.inputs = [x]
    one = Value("one", const=np.ones((), np.float32))
    for i in range(LAYERS):
        scale = graph.add("Add", [one, one], name=f"size{i}").output
        x = graph.add("Mul", [x, scale], name=f"layer{i}").output
    graph.outputs = [x]
    infer_types(graph)
    looks = 0
    subgraphs = Node.subgraphs

    def counted(node):
        nonlocal looks
        looks += 1
        return subgraphs(node)

    monkeypatch.setattr(Node, "subgraphs", counted)
    done = work(graph)
    left = done.nodes if isinstance(done, Graph) else graph.nodes
    assert [n.op for n in left] == ["Mul"] * LAYERS
    assert looks < 10 * LAYERS


def test_a_sweep_does_not_go_through_the_graph_for_each_rewrite(monkeypatch):
    graph = Graph("chain")
    x = Value("x", DType.F32, (2, 3))
    graph.inputs = [x]
    for i in range(LAYERS):
        gate = graph.add("Sigmoid", [x], name=f"gate{i}").output
        x = graph.add("Mul", [x, gate], name=f"layer{i}").output
    graph.outputs = [x]
    searches = []
    position = Graph.position

    def counted(self, node):
        start = self._last
        found = position(self, node)
        searches.append(abs(found - start))
        return found

    monkeypatch.setattr(Graph, "position", counted)
    (silu,) = [p for p in recompose_activations if p(graph.copy(), Journal()) == LAYERS]
    searches.clear()
    assert silu(graph, Journal()) == LAYERS
    assert [n.op for n in graph.nodes] == ["Silu"] * LAYERS
    assert sum(searches) < 10 * LAYERS


def test_bypassed_nodes_do_not_each_search_the_graph_for_subgraphs(monkeypatch):
    graph = Graph("chain")
    x = Value("x", DType.F32, (2, 3))
    graph.inputs = [x]
    for i in range(LAYERS):
        same = graph.add("Identity", [x], name=f"same{i}").output
        x = graph.add("Relu", [same], name=f"layer{i}").output
    graph.outputs = [x]
    looks = 0
    attrs = Node.has_subgraph.fget, Node.subgraphs

    def has_subgraph(node):
        nonlocal looks
        looks += 1
        return attrs[0](node)

    def subgraphs(node):
        nonlocal looks
        looks += 1
        return attrs[1](node)

    monkeypatch.setattr(Node, "has_subgraph", property(has_subgraph))
    monkeypatch.setattr(Node, "subgraphs", subgraphs)
    assert drop_identity(graph, Journal()) == LAYERS
    assert looks < 10 * LAYERS


@rule("cast-to-integers")
class _Cast:
    patterns = [P("Cast", "x")]

    def check(self, graph, m):
        return None

    def rewrite(self, graph, m):
        return graph.replace([m.root], "Shape", [m.x])


def test_after_a_rule_the_readers_of_what_it_made_are_inferred_again():
    """The whole chain behind it has another type and another shape; the branch beside it stays."""
    graph = Graph("chain")
    x = Value("x", DType.F32, (2, 3))
    graph.inputs = [x]
    y = graph.add("Cast", [x], {"to": DType.F32}).output
    for i in range(3):
        y = graph.add("Neg", [y], name=f"neg{i}").output
    beside = graph.add("Neg", [x], name="beside").output
    graph.outputs = [y, beside]
    found = optimize_graph(graph, passes=[_Cast])
    assert [(v.dtype, v.shape) for v in found.outputs] == [(DType.I64, (2,)), (DType.F32, (2, 3))]


@pytest.mark.parametrize("nodes", [1, 100])
def test_looking_at_what_a_rule_touched_is_as_good_as_looking_at_every_node(nodes):
    """A pass that is no rule has every node looked at. Both ways lead to the same graph, and to the
    same costs after each pass."""
    conversion = pytest.importorskip("benchmarks.conversion", reason="in the source tree only")
    content = conversion.many_nodes(nodes).SerializeToString()
    found = []
    for passes in (PIPELINE, [FunctionPass(step.name, step) for step in PIPELINE]):
        journal = Journal()
        made = optimize_graph(read_bytes(content), journal=journal, passes=passes)
        found.append((journal.passes, to_text(made, [])))
    assert found[0] == found[1]


@rule("breaks-another")
class _Break:
    """Leaves a node that it did not touch out of the list of what reads its input."""

    patterns = [P("Cast", "x")]

    def check(self, graph, m):
        return None

    def rewrite(self, graph, m):
        graph.inputs[0].readers.clear()
        return graph.replace([m.root], "Neg", [m.x])


def test_what_a_rule_broke_elsewhere_is_found_in_the_end():
    graph = Graph("chain")
    x = Value("x", DType.F32, (2, 3))
    y = graph.add("Neg", [x], name="beside").output
    graph.inputs, graph.outputs = [x], [graph.add("Cast", [y], {"to": DType.F64}).output]
    with pytest.raises(ShapeError, match=r"beside \(after breaks-another\)"):
        optimize_graph(graph, passes=[_Break])
