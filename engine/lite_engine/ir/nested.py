"""Nodes with subgraphs, what these capture, and a walk through them."""

from __future__ import annotations

from collections.abc import Callable

from .graph import Graph, Node, Value, node_reads


def holders(graph: Graph) -> list[Node]:
    """The nodes with subgraphs."""
    return [node for node in graph.nodes if node.attrs and node.has_subgraph]


def captured(node: Node) -> list[Value]:
    """Values of the surrounding graph that a node's subgraphs read, constants left out."""
    inner: set[int] = set()

    def collect(graph: Graph) -> None:
        inner.update(id(v) for v in graph.inputs)
        for each in graph.nodes:
            inner.update(id(v) for v in each.outputs)
            for _, sub in each.subgraphs():
                collect(sub)

    for _, sub in node.subgraphs():
        collect(sub)
    given = {id(v) for v in node.inputs}
    reads = {id(v): v for v in node_reads(node) if not v.is_const}
    return [v for key, v in reads.items() if key not in inner and key not in given]


def outer_reads(node: Node) -> list[Value]:
    """What a node reads of the graph that it is in: its inputs, and what its branches capture."""
    inner = captured(node) if node.attrs and node.has_subgraph else ()
    return [v for v in (*node.inputs, *inner) if v is not None]


def walk(graph: Graph, visit: Callable[[Node], None]) -> None:
    """Visits every node, subgraphs included."""
    for node in graph.nodes:
        visit(node)
        for _, sub in node.subgraphs() if node.attrs else ():
            walk(sub, visit)
