"""Folding looks at each node a few times, not at all of them for each that folds."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.ir import DType, Graph, Journal, Node, Value
from lite_engine.ops import fold_constants, infer_types, specialise
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
