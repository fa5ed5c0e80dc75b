"""Runs passes in order; after each that changed the graph it is checked and its cost told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..errors import LiteError
from ..ir import Graph, Journal, Node, TypeInfo, Value, verify
from ..ops import Cost, check_types, infer_outputs, node_cost
from ._core import Pass


def run_passes(graph: Graph, passes: Sequence[Pass], journal: Journal) -> None:
    """Runs passes in order on `graph` itself; types, verifier and cost after each change.

    After a `local` pass the verifier looks at what it touched, and at the whole graph in the end.
    Raises ShapeError for a node that its inputs can never fit, and naming the pass after which the
    graph was broken.
    """
    known = _Known()
    check_types(known.update(graph).failed)
    verify(graph, "reading")
    cost = known.cost()
    unseen = ""  # the last pass after which the whole graph was not looked at
    for step in passes:
        before = cost
        rewrites = step(graph, journal)
        if rewrites:
            graph.remove_unread()
            local = getattr(step, "local", False)
            change = known.update(graph, local=local)
            verify(graph, step.name, change.touched if local else None)
            unseen = step.name if local else ""
            cost = known.cost()
        journal.passes.append(
            {"name": step.name, "rewrites": rewrites, "before": before, "after": cost}
        )
    if unseen:
        verify(graph, unseen)


class _Change(NamedTuple):
    """Nodes that are new or have other inputs or outputs, and those whose types cannot be told."""

    touched: list[Node]
    failed: list[tuple[Node, LiteError]]


class _Entry(NamedTuple):
    """A node as it was when it was looked at last."""

    inputs: tuple[Value | None, ...]
    outputs: list[Value]
    holds_graphs: bool  # inside which everything may change
    cost: Cost | None


class _Known:
    """The types and costs of a graph's nodes, found again only where something that they follow
    from has changed: a pass changes few of ten thousand nodes."""

    def __init__(self) -> None:
        self._nodes: dict[Node, _Entry] = {}
        self._types: dict[Value, TypeInfo | None] = {}  # None where even the element type is open
        self._sum = [0, 0, 0]  # of the costs: macs, flops, bytes

    def update(self, graph: Graph, *, local: bool = False) -> _Change:
        """Writes dtype and shape of every node output, in order, where they can be told.

        After a `local` pass only new nodes, those with other inputs or outputs, and readers of what
        has other types now are looked at: it changes nothing else.
        """
        nodes, change = self._nodes, _Change([], [])
        readers: set[Node] = set()  # of values that have other types now
        for node in graph.nodes:
            entry = nodes.get(node)
            as_it_was = (
                entry is not None
                and entry.inputs is node.inputs
                and entry.outputs is node.outputs
                and not entry.holds_graphs
            )
            if not as_it_was:
                change.touched.append(node)
            elif local and not (readers and node in readers):
                continue
            error = infer_outputs(node)
            if error is not None:
                change.failed.append((node, error))
            for value in node.outputs:
                info = value.type if value.dtype else None
                if self._types.setdefault(value, info) != info:
                    self._types[value] = info
                    readers.update(value.readers)
            self._count(entry, -1)
            holds_graphs = bool(node.attrs) and node.has_subgraph
            cost = node_cost(node, inferred=error is None)
            nodes[node] = entry = _Entry(node.inputs, node.outputs, holds_graphs, cost)
            self._count(entry, 1)
        if len(nodes) > len(graph.nodes):
            for gone in nodes.keys() - set(graph.nodes):
                self._count(nodes.pop(gone), -1)
        return change

    def _count(self, entry: _Entry | None, sign: int) -> None:
        if entry is not None and entry.cost is not None:
            cost = entry.cost
            for i, part in enumerate((cost.macs, cost.flops, cost.bytes or 0)):
                self._sum[i] += sign * part

    def cost(self) -> dict[str, int]:
        """Nodes, multiply-accumulates, other operations and bytes moved, where shapes are known;
        of the graph that was updated last."""
        macs, flops, moved = self._sum
        return {"nodes": len(self._nodes), "macs": macs, "flops": flops, "bytes": moved}
