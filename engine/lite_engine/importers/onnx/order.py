"""The order of a graph's nodes, from what they read and make by name."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from ...errors import ModelFormatError
from .._protobuf import Message


def in_order(protos: list[Message]) -> list[Message]:
    """Nodes sorted so that each follows what it reads; files in order come out unchanged.

    Raises ModelFormatError on a cycle.
    """
    maker: dict[str, int] = {}
    for i, proto in enumerate(protos):
        for name in proto.texts(2):
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
        raise ModelFormatError(
            f"the graph has a cycle through {protos[at].text(3) or protos[at].text(4)}"
        )
    return [protos[i] for i in order]


def _names_read(proto: Message) -> Iterator[str]:
    """Names a node reads, those captured by its subgraphs included."""
    yield from proto.texts(1)
    for attr in proto.messages(5):
        graph = attr.message(6)
        if graph is not None:
            for node in graph.messages(1):
                yield from _names_read(node)
            for info in graph.messages(12):
                yield info.text(1)
