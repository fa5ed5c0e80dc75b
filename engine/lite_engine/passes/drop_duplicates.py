"""Nodes that compute the same of the same inputs become one; equal small constants as well."""

from __future__ import annotations

from typing import Any

import numpy as np
from lite_messages import tr

from ..ir import Graph, Journal, Node, Value
from ..ops import find_op
from ._core import captured_outputs, graph_pass

#: Constants up to this size are compared by their bytes; larger ones only with themselves.
LIMIT_BYTES = 4096


@graph_pass("drop-duplicates", local=True)
def drop_duplicates(graph: Graph, journal: Journal) -> int:
    seen, pinned = _Seen(), captured_outputs(graph)
    count = 0
    for node in list(graph.nodes):
        op = find_op(node.op)
        if (op is not None and op.random) or node.has_subgraph:
            continue
        first = seen.first(node)
        if first is node or len(first.outputs) != len(node.outputs):
            continue
        if any(graph.is_output(v) or id(v) in pinned for v in node.outputs):
            journal.refused("drop-duplicates", (node.name,), tr("it makes an output of the model"))
            continue
        for old, new in zip(node.outputs, first.outputs):
            graph.replace_uses(old, new)
        first.sources = tuple(dict.fromkeys((*first.sources, *node.sources)))
        graph.remove(node)
        journal.rewrote("drop-duplicates", (first.name, node.name), (first.name,))
        count += 1
    return count


class _Seen:
    """The first node of each kind. Constants and attributes, which take long, are only looked at
    where nodes have the same operator and read the same otherwise: few do."""

    def __init__(self) -> None:
        self._alone: dict[Any, Node] = {}
        self._first: dict[Any, Node] = {}

    def first(self, node: Node) -> Node:
        """The first node that computes what this one does, which may be itself."""
        rough = node.op, tuple([_rough_key(v) for v in node.inputs])
        other = self._alone.setdefault(rough, node)
        if other is node:
            return node
        self._first.setdefault(_key(other), other)
        return self._first.setdefault(_key(node), node)


def _rough_key(value: Value | None) -> Any:
    array = None if value is None else value.const
    if array is None or array.nbytes > LIMIT_BYTES:
        return id(value)
    return array.shape


def _key(node: Node) -> Any:
    attrs = tuple(sorted([(k, _frozen(v)) for k, v in node.attrs.items()]))
    return node.op, node.domain, attrs, tuple([_value_key(v) for v in node.inputs])


def _value_key(value: Value | None) -> Any:
    if value is None:
        return None
    array = value.const
    if array is None or array.nbytes > LIMIT_BYTES:
        return id(value)
    return value.dtype, array.shape, array.tobytes()


def _frozen(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(_frozen(v) for v in value)
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape, value.tobytes()
    return repr(value)
