"""The verifier that runs between passes: single producers, order, reader lists, known names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from lite_messages import tr

from ..errors import ShapeError
from .graph import Graph, Node, Value, node_reads

#: Readers that are looked through one by one.
_FEW = 16


def verify(graph: Graph, after: str = "", nodes: Sequence[Node] | None = None) -> None:
    """Raises ShapeError naming what is broken (and `after` which pass it showed).

    Where `nodes` are given they alone are looked at, their names among each other and no names of
    constants: that is enough for a graph that was whole before these got other inputs or were put
    in, and of which all names are looked at in the end.
    """
    message = next(_broken(graph, nodes), None)
    if message is not None:
        where = f" (after {after})" if after else ""
        raise ShapeError(
            tr(
                "graph {graph} is broken: {message}{where}",
                graph=graph.name,
                message=message,
                where=where,
            )
        )


def _broken(graph: Graph, nodes: Sequence[Node] | None) -> Iterator[str]:
    """What is wrong, most of it one node at a time."""
    places = {node: place for place, node in enumerate(graph.nodes)}
    given = set(graph.inputs)
    many: dict[Value, set[Node]] = {}  # readers of what many read: a constant may have thousands
    for node in graph.nodes if nodes is None else nodes:
        place = places[node]
        inputs = node.inputs
        for read in node_reads(node) if node.attrs and node.has_subgraph else inputs:
            producer = None if read is None else read.producer
            if read is None or producer is None or producer not in places or read in given:
                continue
            if places[producer] >= place or read not in producer.outputs:
                yield tr(
                    "{node} reads {name} before it is computed", node=node.name, name=read.name
                )
        for value in filter(None, inputs):
            if len(value.readers) < _FEW:
                listed = node in value.readers
            else:
                listed = node in (many.get(value) or many.setdefault(value, set(value.readers)))
            if not listed:
                yield tr(
                    "{given} does not list its reader {node}", given=value.name, node=node.name
                )
        for value in node.outputs:
            if value.producer is not node:
                yield tr(
                    "{name} does not name {node} as its producer", name=value.name, node=node.name
                )
            if value.const is not None:
                yield tr(
                    "{name} is made by {node} and is a constant as well",
                    name=value.name,
                    node=node.name,
                )
            if value in given or (len(node.outputs) > 1 and node.outputs.count(value) > 1):
                yield tr("{name} is computed twice", name=value.name)
    yield from _names_given_twice(graph, nodes)
    for value in graph.outputs:
        if value.const is not None or value in given:
            continue
        if value.producer is None:
            yield tr("output {name} is made by nothing", name=value.name)
        elif value.producer not in places or value not in value.producer.outputs:
            yield tr("output {name} is made by a node that is not in the graph", name=value.name)


def _names_given_twice(graph: Graph, given: Sequence[Node] | None) -> Iterator[str]:
    nodes = graph.nodes if given is None else given
    names = [node.name for node in nodes]
    if len(set(names)) != len(names):
        yield tr("two nodes are called {node!r}", node=_twice(names))
    others: set[Value | None] = {*graph.inputs, *graph.outputs}
    if given is None:
        for node in nodes:
            others.update(node.inputs)
    names = [value.name for node in nodes for value in node.outputs]
    names += [value.name for value in others if value is not None and value.producer is None]
    if len(set(names)) != len(names):
        yield tr("two values are called {name!r}", name=_twice(names))


def _twice(names: Sequence[str]) -> str:
    return next(name for name, count in Counter(names).items() if count > 1)
