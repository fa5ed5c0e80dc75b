"""The order of a graph's nodes, from what they read and make by name."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from lite_messages import tr

from ...errors import ModelFormatError
from .._protobuf import Message
from . import fields


def in_order(protos: list[Message]) -> list[Message]:
    """Nodes sorted so that each follows what it reads; files in order come out unchanged.

    Raises ModelFormatError on a cycle.
    """
    maker: dict[str, int] = {}
    for i, proto in enumerate(protos):
        for name in proto.texts(fields.NodeProto.OUTPUT):
            if name:
                maker.setdefault(name, i)
    reads = [[maker[n] for n in _names_read(p) if n in maker] for p in protos]
    if all(j < i for i, js in enumerate(reads) for j in js):
        return protos
    waiting = [len(set(js)) for js in reads]
    readers: list[list[int]] = [[] for _ in protos]
    for i, js in enumerate(reads):
        for j in set(js):
            readers[j].append(i)
    ready = [i for i, n in enumerate(waiting) if n == 0]
    order: list[int] = []
    while ready:
        i = heapq.heappop(ready)
        order.append(i)
        for j in readers[i]:
            waiting[j] -= 1
            if waiting[j] == 0:
                heapq.heappush(ready, j)
    if len(order) != len(protos):
        at = next(i for i, n in enumerate(waiting) if n > 0)
        node = protos[at]
        name = node.text(fields.NodeProto.NAME) or node.text(fields.NodeProto.OP_TYPE)
        raise ModelFormatError(tr("the graph has a cycle through {name}", name=name))
    return [protos[i] for i in order]


def _names_read(proto: Message) -> Iterator[str]:
    """Names a node reads, those captured by its subgraphs included."""
    yield from proto.texts(fields.NodeProto.INPUT)
    for attr in proto.messages(fields.NodeProto.ATTRIBUTE):
        graph = attr.message(fields.Attribute.G)
        if graph is not None:
            yield from _captured(graph)


def _captured(graph: Message) -> set[str]:
    """Names of a surrounding graph that a subgraph reads: a name that is its own may be met there
    as well."""
    read, own = set[str](), set[str]()
    for node in graph.messages(fields.GraphProto.NODE):
        read.update(_names_read(node))
        own.update(node.texts(fields.NodeProto.OUTPUT))
    for info in graph.messages(fields.GraphProto.OUTPUT):
        read.add(info.text(fields.ValueInfo.NAME))
    for info in graph.messages(fields.GraphProto.INPUT):
        own.add(info.text(fields.ValueInfo.NAME))
    for tensor in graph.messages(fields.GraphProto.INITIALIZER):
        own.add(tensor.text(fields.Tensor.NAME))
    return read - own
