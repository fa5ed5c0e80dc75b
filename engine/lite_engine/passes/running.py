"""Runs passes in order; after each that changed the graph it is checked and its cost told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..errors import LiteError
from ..ir import Graph, Journal, Node, Value, verify
from ..ops import Cost, check_types, infer_outputs, node_cost
from ._core import Pass, RulePass


def run_passes(graph: Graph, passes: Sequence[Pass], journal: Journal) -> None:
    """Runs passes in order on `graph` itself; types, verifier and cost after each change.

    After a rule the verifier looks at what it touched, and at the whole graph in the end. Raises
    ShapeError for a node that its inputs can never fit, and naming the pass after which the graph
    was broken.
    """
    known = _Known()
    check_types(known.update(graph).failed)
    verify(graph, "reading")
    cost = known.cost()
    unseen = ""  # the last rule after which the whole graph was not looked at
    for step in passes:
        before = cost
        rewrites = step(graph, journal)
        if rewrites:
            graph.remove_unread()
            by_rule = isinstance(step, RulePass)
            change = known.update(graph, by_rule=by_rule)
            verify(graph, step.name, change.touched if by_rule else None)
            unseen = step.name if by_rule else ""
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


@dataclass
class _Entry:
    """What is known of a node. It holds what the facts name by id, so that no id is used again."""

    inputs: tuple[Value | None, ...]
    outputs: list[Value]
    constants: list[np.ndarray | None]
    facts: tuple[Any, ...] | None
    cost: Cost | None


class _Known:
    """The types and costs of a graph's nodes, found again only where something that they follow
    from has changed: a pass changes few of ten thousand nodes."""

    def __init__(self) -> None:
        self._nodes: dict[Node, _Entry] = {}
        self._sum = [0, 0, 0]  # of the costs: macs, flops, bytes

    def update(self, graph: Graph, *, by_rule: bool = False) -> _Change:
        """Writes dtype and shape of every node output, in order, where they can be told.

        After a rule only new nodes, those with other inputs and the readers of both are looked at:
        it changes nothing else (`RulePass`).
        """
        nodes, change = self._nodes, _Change([], [])
        readers: set[Node] = set()  # of nodes that were looked at
        for node in graph.nodes:
            entry = nodes.get(node)
            as_it_was = (
                entry is not None
                and entry.inputs is node.inputs
                and entry.outputs is node.outputs
                and entry.facts is not None  # no subgraph, inside which everything may change
            )
            if as_it_was and by_rule and node not in readers:
                continue
            if not as_it_was:
                change.touched.append(node)
            if entry is None or entry.facts is None or entry.facts != _facts(node):
                error = infer_outputs(node)
                if error is not None:
                    change.failed.append((node, error))
                self._count(entry, -1)
                nodes[node] = entry = _entry(node)
                self._count(entry, 1)
                readers.update([r for v in node.outputs for r in v.readers])
            else:
                entry.inputs, entry.outputs = node.inputs, node.outputs
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


def _entry(node: Node) -> _Entry:
    constants = [None if v is None else v.const for v in node.inputs]
    return _Entry(node.inputs, node.outputs, constants, _facts(node), node_cost(node))


def _facts(node: Node) -> tuple[Any, ...] | None:
    """What a node's types and cost follow from, and the types that it has; None for a node with
    subgraphs."""
    if node.has_subgraph:
        return None
    return (
        node.op,
        [(key, _frozen(value)) for key, value in node.attrs.items()],
        [v and (v.dtype, v.shape, id(v.const)) for v in node.inputs],
        [(id(v), v.dtype, v.shape) for v in node.outputs],
    )


def _frozen(value: Any) -> Any:
    if isinstance(value, list):
        return [*map(_frozen, value)]
    return value.tobytes() if isinstance(value, np.ndarray) else value
