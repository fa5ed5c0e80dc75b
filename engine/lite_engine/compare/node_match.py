"""Which node of one graph is which node of another, where names, order and a few layers differ.

First by name and operator, then by the name of what they make, then by weights; what is left by
structure: nodes of one operator whose inputs, or whose readers, are matched. Names that a format's
reader made from numbers ("Conv_12") do not outweigh weights.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator

from ..ir import Graph, Node

Key = Callable[[Node], Hashable | None]


def matched_nodes(a: Graph, b: Graph) -> list[tuple[Node, Node]]:
    """Pairs in the order of `a`; each node is in one pair at most."""
    found = _Pairs(a, b)
    found.by(lambda n: (n.op, n.name, _weights(n)) if _weights(n) else None)
    found.by(lambda n: (n.op, _weights(n)) if _weights(n) else None)
    found.by(lambda n: (n.op, n.name) if n.name else None)
    found.by(lambda n: (n.op, n.outputs[0].name) if n.outputs[0].name else None)
    while found.spread():
        pass
    return [(n, found.of_a[id(n)]) for n in a.nodes if id(n) in found.of_a]


def _weights(node: Node) -> str:
    """A digest of a node's constants of more than a few numbers; empty without any."""
    arrays = [v.const for v in node.inputs if v is not None and v.const is not None]
    large = [a for a in arrays if a.size > 8]
    digest = hashlib.blake2b(digest_size=16)
    for array in large:
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest() if large else ""


class _Pairs:
    """Pairs found so far, both ways, by id."""

    def __init__(self, a: Graph, b: Graph) -> None:
        self.a, self.b = a, b
        self.of_a: dict[int, Node] = {}
        self.of_b: dict[int, Node] = {}

    def _left(self, graph: Graph, known: dict[int, Node]) -> Iterator[Node]:
        return (n for n in graph.nodes if id(n) not in known)

    def _add(self, x: Node, y: Node) -> None:
        self.of_a[id(x)], self.of_b[id(y)] = y, x

    def by(self, key: Key) -> None:
        """Pairs what has one key, in order."""
        groups: defaultdict[Hashable, list[Node]] = defaultdict(list)
        for node in self._left(self.b, self.of_b):
            if (k := key(node)) is not None:
                groups[k].append(node)
        for node in list(self._left(self.a, self.of_a)):
            if (k := key(node)) is not None and groups.get(k):
                self._add(node, groups[k].pop(0))

    def spread(self) -> bool:
        """Pairs neighbours of pairs; whether there were any."""
        before = len(self.of_a)
        self.by(self._source)
        self.by(self._reader)
        return len(self.of_a) > before

    def _source(self, node: Node) -> Hashable | None:
        """The matched node, or the input of the graph, that its first input comes from."""
        x = node.input(0)
        if x is None or x.is_const:
            return None
        if x.producer is not None:
            known = self._known(x.producer)
            return known and (node.op, known, x.producer.outputs.index(x))
        at = next((i for g in (self.a, self.b) for i, v in enumerate(g.inputs) if v is x), None)
        return None if at is None else (node.op, "input", at)

    def _reader(self, node: Node) -> Hashable | None:
        """The matched node that reads its first output, or which output of the graph that is."""
        y = node.outputs[0]
        if y.readers:
            known = self._known(y.readers[0])
            return known and (node.op, known, y.readers[0].inputs.index(y))
        at = next((i for g in (self.a, self.b) for i, v in enumerate(g.outputs) if v is y), None)
        return None if at is None else (node.op, "output", at)

    def _known(self, node: Node) -> int | None:
        """The same number for both nodes of a pair."""
        mine = node if id(node) in self.of_a else self.of_b.get(id(node))
        return None if mine is None else id(mine)
