"""The verifier that runs between passes: single producers, order, reader lists, known names."""

from __future__ import annotations

from collections import Counter

from lite_messages import tr

from ..errors import ShapeError
from .graph import Graph, node_reads

#: Readers that are looked through one by one.
_FEW = 16


def verify(graph: Graph, after: str = "") -> None:
    """Raises ShapeError naming what is broken (and `after` which pass it showed)."""
    where = f" (after {after})" if after else ""

    def fail(message: str) -> None:
        raise ShapeError(
            tr(
                "graph {graph} is broken: {message}{where}",
                graph=graph.name,
                message=message,
                where=where,
            )
        )

    defined: set[int] = {id(v) for v in graph.inputs}
    members = {id(n) for n in graph.nodes}
    node_names: set[str] = set()
    readers: dict[int, set[int]] = {}  # of what many read: a constant may have thousands
    for node in graph.nodes:
        if node.name in node_names:
            fail(tr("two nodes are called {node!r}", node=node.name))
        node_names.add(node.name)
        for value in node_reads(node) if node.has_subgraph else node.inputs:
            if value is None or value.producer is None or id(value) in defined:
                continue
            if id(value.producer) in members:
                fail(
                    tr("{node} reads {name} before it is computed", node=node.name, name=value.name)
                )
        for given in node.inputs:
            if given is None:
                continue
            if len(given.readers) < _FEW:
                listed = node in given.readers
            else:
                if id(given) not in readers:
                    readers[id(given)] = {id(r) for r in given.readers}
                listed = id(node) in readers[id(given)]
            if not listed:
                fail(
                    tr("{given} does not list its reader {node}", given=given.name, node=node.name)
                )
        for value in node.outputs:
            if value.producer is not node:
                fail(
                    tr(
                        "{name} does not name {node} as its producer",
                        name=value.name,
                        node=node.name,
                    )
                )
            if value.is_const:
                fail(
                    tr(
                        "{name} is made by {node} and is a constant as well",
                        name=value.name,
                        node=node.name,
                    )
                )
            if id(value) in defined:
                fail(tr("{name} is computed twice", name=value.name))
            defined.add(id(value))
    names = {id(value): value.name for value in graph.all_values()}
    if len(set(names.values())) != len(names):
        name = next(name for name, count in Counter(names.values()).items() if count > 1)
        fail(tr("two values are called {name!r}", name=name))
    for value in graph.outputs:
        if id(value) not in defined and not value.is_const and value.producer is not None:
            fail(tr("output {name} is made by a node that is not in the graph", name=value.name))
        if value.producer is None and not value.is_const and id(value) not in defined:
            fail(tr("output {name} is made by nothing", name=value.name))
