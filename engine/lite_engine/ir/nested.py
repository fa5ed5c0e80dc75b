"""What a node's subgraphs read and hand out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .graph import Graph, Node, Value


def node_reads(node: Node) -> Iterator[Value]:
    """Values a node reads, those captured by its subgraphs included."""
    yield from (v for v in node.inputs if v is not None)
    for _, sub in node.subgraphs():
        for inner in sub.nodes:
            yield from node_reads(inner)
        yield from sub.outputs


def handed_out(node: Node) -> set[int]:
    """Ids of the values that the node's subgraphs have as outputs: no reader list names those."""
    found: set[int] = set()
    for _, sub in node.subgraphs():
        found.update(id(v) for v in sub.outputs)
        found.update(*map(handed_out, sub.nodes))
    return found


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


def walk(graph: Graph, visit: Callable[[Node], None]) -> None:
    """Visits every node, subgraphs included."""
    for node in graph.nodes:
        visit(node)
        for _, sub in node.subgraphs():
            walk(sub, visit)
