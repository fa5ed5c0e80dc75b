"""An estimate of what layers cost, for the search of those that stay in float."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..errors import LiteError
from ..ir import Graph, Node
from ..ops import get_op, specialise
from .scheme import Scheme
from .select import integer_nodes

#: Cost of a multiply-accumulate in integers against one in floats.
INTEGER_COST = 0.25


class Costs:
    """Multiply-accumulates of a graph's nodes at the sizes of one sample, those in integers at a
    quarter. Operators without a cost count as free."""

    def __init__(self, graph: Graph, sample: Mapping[str, np.ndarray]) -> None:
        self._graph = graph
        if not all(v.type.is_static for n in graph.nodes for v in n.outputs if v.dtype):
            graph = specialise(graph, {name: x.shape for name, x in sample.items()})
        self._macs = {n.name: _macs(n) for n in graph.nodes}

    def of(self, name: str, integer: bool) -> float:
        return self._macs.get(name, 0.0) * (INTEGER_COST if integer else 1.0)

    def total(self, scheme: Scheme) -> float:
        """Of the whole graph, quantized like this."""
        chosen, _ = integer_nodes(self._graph, scheme.keep_float)
        return sum(self.of(n.name, n.name in chosen) for n in self._graph.nodes)


def _macs(node: Node) -> float:
    types = [None if v is None else v.type for v in node.inputs]
    results = [v.type for v in node.outputs]
    if not all(t is None or t.is_static for t in (*types, *results)):
        return 0.0  # sizes that data decide
    try:
        return float(get_op(node.op).cost_of(node, types, results).macs)
    except LiteError:
        return 0.0


__all__ = ["Costs"]
