"""A Concat that goes on where another one ends reads what that one made.

Concat(a, b, c), Concat(a, b)       Concat(Concat(a, b), c)

So each layer of a dense block (Huang et al., 2017) adds its own part, and the planner lays all of
them in one buffer.
"""

from __future__ import annotations

from ..ir import Graph, Journal, Value
from ._core import graph_pass

_Joined = tuple[int, ...]


@graph_pass("merge-joins", local=True)
def merge_joins(graph: Graph, journal: Journal) -> int:
    count = 0
    made: dict[tuple[int, _Joined], Value] = {}
    for node in graph.nodes:
        if node.op != "Concat" or any(v is None for v in node.inputs):
            continue
        axis, shape = int(node.attrs.get("axis", 0)), node.output.shape
        if shape is None:
            continue
        axis %= len(shape)
        parts = tuple(id(v) for v in node.inputs)
        for length in range(len(parts) - 1, 1, -1):
            shared = made.get((axis, parts[:length]))
            if shared is not None:
                node.inputs = [shared, *node.inputs[length:]]
                journal.rewrote("merge-joins", (node.name,), (node.name,))
                count += 1
                break
        made.setdefault((axis, parts), node.output)
    return count
