"""Runs passes in order; after each that changed the graph it is checked and its cost told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import LiteError
from ..ir import Graph, Journal, Node, verify
from ..ops import Cost, check_types, find_op, infer_outputs
from ._core import Pass


def run_passes(graph: Graph, passes: Sequence[Pass], journal: Journal) -> None:
    """Runs passes in order on `graph` itself; types, verifier and cost after each change.

    Raises ShapeError for a node that its inputs can never fit, and naming the pass after which
    the graph was broken.
    """
    known = _Known()
    check_types(known.update(graph))
    verify(graph, "reading")
    cost = known.cost(graph)
    for step in passes:
        before = cost
        rewrites = step(graph, journal)
        if rewrites:
            graph.remove_unread()
            known.update(graph)
            verify(graph, step.name)
            cost = known.cost(graph)
        journal.passes.append(
            {"name": step.name, "rewrites": rewrites, "before": before, "after": cost}
        )


class _Known:
    """The types and costs of a graph's nodes, found again only where something that they follow
    from has changed: a pass changes few of ten thousand nodes."""

    def __init__(self) -> None:
        #: By the node's id: the node and its constants, which keep their ids from being used again,
        #: what its types and cost follow from, and the cost.
        self._nodes: dict[int, tuple[Node, list[Any], tuple[Any, ...] | None, Cost | None]] = {}

    def update(self, graph: Graph) -> list[tuple[Node, LiteError]]:
        """Writes dtype and shape of every node output, in order, where they can be told. The nodes
        of which that failed now."""
        found, failed = {}, []
        for node in graph.nodes:
            entry = self._nodes.get(id(node))
            if entry is None or entry[2] is None or entry[2] != _facts(node):
                error = infer_outputs(node)
                if error is not None:
                    failed.append((node, error))
                constants = [None if v is None else v.const for v in node.inputs]
                entry = node, constants, _facts(node), _cost(node)
            found[id(node)] = entry
        self._nodes = found
        return failed

    def cost(self, graph: Graph) -> dict[str, int]:
        """Nodes, multiply-accumulates, other operations and bytes moved, where shapes are known;
        of the graph that was updated last."""
        costs = [cost for *_, cost in self._nodes.values() if cost is not None]
        return {
            "nodes": len(graph.nodes),
            "macs": sum(cost.macs for cost in costs),
            "flops": sum(cost.flops for cost in costs),
            "bytes": sum(cost.bytes or 0 for cost in costs),
        }


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
