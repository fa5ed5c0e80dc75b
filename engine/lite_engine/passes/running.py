"""Runs passes in order; after each that changed the graph it is checked and its cost told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import LiteError
from ..ir import Graph, Journal, Node, Value, verify
from ..ops import Cost, check_types, find_op, infer_outputs
from ._core import Pass, RulePass


def run_passes(graph: Graph, passes: Sequence[Pass], journal: Journal) -> None:
    """Runs passes in order on `graph` itself; types, verifier and cost after each change.

    Raises ShapeError for a node that its inputs can never fit, and naming the pass after which
    the graph was broken.
    """
    known = _Known()
    check_types(known.update(graph))
    verify(graph, "reading")
    cost = known.cost()
    for step in passes:
        before = cost
        rewrites = step(graph, journal)
        if rewrites:
            graph.remove_unread()
            known.update(graph, by_rule=isinstance(step, RulePass))
            verify(graph, step.name)
            cost = known.cost()
        journal.passes.append(
            {"name": step.name, "rewrites": rewrites, "before": before, "after": cost}
        )


@dataclass
class _Entry:
    """What is known of a node. It holds what the facts name by id, so that no id is used again."""

    node: Node
    inputs: tuple[Value | None, ...]
    outputs: list[Value]
    constants: list[np.ndarray | None]
    facts: tuple[Any, ...] | None
    cost: Cost | None


class _Known:
    """The types and costs of a graph's nodes, found again only where something that they follow
    from has changed: a pass changes few of ten thousand nodes."""

    def __init__(self) -> None:
        self._nodes: dict[int, _Entry] = {}  # by the node's id
        self._sum = [0, 0, 0]  # of the costs: macs, flops, bytes

    def update(self, graph: Graph, *, by_rule: bool = False) -> list[tuple[Node, LiteError]]:
        """Writes dtype and shape of every node output, in order, where they can be told. The nodes
        of which that failed now.

        After a rule only new nodes, those with other inputs and the readers of both are looked at:
        it changes nothing else (`RulePass`).
        """
        found: dict[int, _Entry] = {}
        failed = []
        readers: set[int] = set()  # of nodes that were looked at
        for node in graph.nodes:
            key = id(node)
            entry = self._nodes.pop(key, None)
            if entry is None or not (by_rule and key not in readers and _as_it_was(entry)):
                if entry is None or entry.facts is None or entry.facts != _facts(node):
                    error = infer_outputs(node)
                    if error is not None:
                        failed.append((node, error))
                    self._count(entry, -1)
                    entry = _entry(node)
                    self._count(entry, 1)
                    readers.update([id(r) for v in node.outputs for r in v.readers])
                else:
                    entry.inputs, entry.outputs = node.inputs, node.outputs
            found[key] = entry
        for gone in self._nodes.values():
            self._count(gone, -1)
        self._nodes = found
        return failed

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
    return _Entry(node, node.inputs, node.outputs, constants, _facts(node), _cost(node))


def _as_it_was(entry: _Entry) -> bool:
    """Whether nobody gave the node other inputs or outputs, and no subgraph may have changed."""
    node = entry.node
    return entry.inputs is node.inputs and entry.outputs is node.outputs and entry.facts is not None


def _facts(node: Node) -> tuple[Any, ...] | None:
    """What a node's types and cost follow from, and the types that it has; None for a node with
    subgraphs, inside which everything may change."""
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


def _cost(node: Node) -> Cost | None:
    op = find_op(node.op)
    values = [v for v in (*node.inputs, *node.outputs) if v is not None]
    if op is None or any(v.dtype is None or not v.type.is_static for v in values):
        return None
    types = [None if v is None else v.type for v in node.inputs]
    try:
        return op.cost_of(node, types, [v.type for v in node.outputs])
    except LiteError:
        return None  # a cost that cannot be stated is left out of the sum, as shapes unknown are
