"""The verifier that runs between passes: single producers, order, reader lists, known names."""

from __future__ import annotations

from ..errors import ShapeError
from .graph import Graph, Value, node_reads


def verify(graph: Graph, after: str = "") -> None:
    """Raises ShapeError naming what is broken (and `after` which pass it showed)."""
    where = f" (after {after})" if after else ""

    def fail(message: str) -> None:
        raise ShapeError(f"graph {graph.name} is broken: {message}{where}")

    defined: set[int] = {id(v) for v in graph.inputs}
    members = {id(n) for n in graph.nodes}
    names: dict[str, Value] = {}
    node_names: set[str] = set()
    readers: dict[int, set[int]] = {}  # a constant may be read by thousands
    for node in graph.nodes:
        if node.name in node_names:
            fail(f"two nodes are called {node.name!r}")
        node_names.add(node.name)
        for value in node_reads(node):
            local = value.producer is not None and id(value.producer) in members
            if local and id(value) not in defined:
                fail(f"{node.name} reads {value.name} before it is made")
        for given in node.inputs:
            if given is None:
                continue
            if id(given) not in readers:
                readers[id(given)] = {id(r) for r in given.readers}
            if id(node) not in readers[id(given)]:
                fail(f"{given.name} does not list its reader {node.name}")
        for value in node.outputs:
            if value.producer is not node:
                fail(f"{value.name} does not name {node.name} as its producer")
            if value.is_const:
                fail(f"{value.name} is made by {node.name} and is a constant as well")
            if id(value) in defined:
                fail(f"{value.name} is made twice")
            defined.add(id(value))
    for value in graph.values():
        if names.setdefault(value.name, value) is not value:
            fail(f"two values are called {value.name!r}")
    for value in graph.outputs:
        if id(value) not in defined and not value.is_const and value.producer is not None:
            fail(f"output {value.name} is made by a node that is not in the graph")
        if value.producer is None and not value.is_const and id(value) not in defined:
            fail(f"output {value.name} is made by nothing")
