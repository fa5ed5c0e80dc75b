"""The verifier finds each way in which a rewrite can break a graph."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from lite_engine.errors import ShapeError
from lite_engine.ir import DType, Graph, Value, captured, verify


def small() -> Graph:
    """x → Relu → Neg → y"""
    graph = Graph("g")
    x = Value("x", DType.F32, (2,))
    graph.inputs = [x]
    relu = graph.add("Relu", [x], name="relu")
    neg = graph.add("Neg", [relu.output], name="neg")
    graph.outputs = [neg.output]
    return graph


def swap(graph: Graph) -> None:
    graph.nodes.reverse()


def same_node_name(graph: Graph) -> None:
    graph.nodes[1].name = "relu"


def same_value_name(graph: Graph) -> None:
    graph.nodes[0].output.name = "x"


def lost_reader(graph: Graph) -> None:
    graph.inputs[0].readers.clear()


def wrong_producer(graph: Graph) -> None:
    graph.nodes[0].output.producer = graph.nodes[1]


def constant_output(graph: Graph) -> None:
    graph.nodes[0].output.const = np.zeros(2, np.float32)


def made_twice(graph: Graph) -> None:
    graph.nodes[1].outputs = [graph.nodes[0].output]
    graph.nodes[0].output.producer = graph.nodes[1]


def orphan_output(graph: Graph) -> None:
    graph.outputs = [Value("nothing", DType.F32, (2,))]


def removed_producer(graph: Graph) -> None:
    graph.nodes.pop()


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (swap, "before it is computed"),
        (same_node_name, "two nodes"),
        (same_value_name, "two values"),
        (lost_reader, "reader"),
        (wrong_producer, "producer"),
        (constant_output, "constant"),
        (made_twice, "."),
        (orphan_output, "made by nothing"),
        (removed_producer, "not in the graph"),
    ],
)
def test_finds(damage: Callable[[Graph], None], says: str) -> None:
    graph = small()
    verify(graph)
    damage(graph)
    with pytest.raises(ShapeError, match=says) as caught:
        verify(graph, "some-pass")
    assert re.search("after some-pass", str(caught.value))
    with pytest.raises(ShapeError, match=says):
        verify(graph, nodes=graph.nodes)


def test_rewrites_keep_it_whole() -> None:
    graph = small()
    relu, neg = graph.nodes
    fused = graph.replace([relu, neg], "Fused", [graph.inputs[0]])
    verify(graph)
    assert fused.sources == ("relu", "neg")
    assert [n.op for n in graph.nodes] == ["Fused"]
    assert graph.outputs[0].producer is fused


def test_replace_uses_reaches_outputs() -> None:
    graph = small()
    last = graph.outputs[0]
    copy = graph.add("Identity", [last], name="copy")
    graph.outputs = [copy.output]
    graph.replace_uses(copy.output, last)
    graph.remove(copy)
    verify(graph)
    assert graph.outputs == [last]


def test_remove_refuses_what_is_read() -> None:
    graph = small()
    with pytest.raises(ShapeError, match="still read"):
        graph.remove(graph.nodes[0])


def test_sort_and_cycle() -> None:
    graph = small()
    graph.nodes.reverse()
    graph.sort()
    verify(graph)
    graph.nodes[0].inputs = [graph.nodes[1].output]
    with pytest.raises(ShapeError, match="cycle"):
        graph.sort()


def test_copy_is_independent() -> None:
    graph = small()
    other = graph.copy()
    other.nodes[0].op = "Abs"
    other.outputs[0].name = "z"
    assert graph.nodes[0].op == "Relu" and graph.outputs[0].name == "neg"
    verify(graph)
    verify(other)


def test_captured_values() -> None:
    graph = small()
    relu = graph.nodes[0]
    body = Graph("body")
    inner = body.add("Add", [relu.output, graph.inputs[0]], name="inner")
    body.outputs = [inner.output]
    node = graph.add("If", [graph.inputs[0]], {"then_branch": body}, name="if")
    assert captured(node) == [relu.output]
    verify(graph)


def test_a_position_is_found_after_most_nodes_are_gone() -> None:
    graph = Graph("chain")
    value = Value("x", DType.F32, (2,))
    graph.inputs = [value]
    for i in range(300):
        value = graph.add("Relu", [value], name=f"relu{i}").output
    graph.outputs = [value]
    assert graph.position(graph.nodes[299]) == 299
    assert graph.position(graph.nodes[3]) == 3
    assert graph.position(graph.nodes[298]) == 298
    del graph.nodes[100:]
    assert [graph.position(node) for node in graph.nodes[:2]] == [0, 1]
    with pytest.raises(ValueError, match="relu"):
        graph.position(Graph("other").add("Relu", [value], name="relu"))
