"""Folding looks at each node a few times, not at all of them for each that folds."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.ir import DType, Graph, Node, Value
from lite_engine.ops import fold_constants, infer_types, specialise

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
