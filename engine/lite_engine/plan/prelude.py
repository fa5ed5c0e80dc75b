"""Small layers of integers at a graph's start that stay on the host, as one there needs them.

Positions of tokens that are counted from the input (RoBERTa: Equal, Not, Cast, CumSum, Mul, Add)
are an example: a device has kernels for every second of these layers, and each change of place
makes the host wait for the device.
"""

from __future__ import annotations

from collections.abc import Callable

from lite_messages import tr

from ..ir import Graph, Node
from ..ops import get_op
from .host_cost import host_ms

#: Most that layers before one on the host may take there: about as long as a device's answer.
MOST_MS = 0.1


def host_prelude(graph: Graph, runs: Callable[[Node], bool]) -> dict[str, str]:
    """Names of the layers of a specialised graph that a device can run and the host should: why.

    `runs` says which layers the device can run. One that it cannot takes those before it along, up
    to the graph's inputs, where they compute with integers and truth values alone and together take
    no longer than MOST_MS.
    """
    moved: dict[str, str] = {}
    #: of each value the layers of the device before it, by name; None where they are too much
    before: dict[int, dict[str, Node] | None] = {}
    for node in graph.nodes:
        needed: dict[str, Node] | None = {}
        for value in node.inputs:
            found = before.get(id(value), {})
            needed = None if needed is None or found is None else needed | found
        if needed is not None and get_op(node.op, node.name).layout != "view":
            if not _of_integers(node):
                needed = None
            elif runs(node):
                needed = {**needed, node.name: node}
                needed = needed if sum(map(host_ms, needed.values())) <= MOST_MS else None
            else:
                why = tr("{layer}, which needs it, is on the CPU", layer=node.name)
                moved.update(dict.fromkeys(needed, why))
                needed = {}
        for value in node.outputs:
            before[id(value)] = needed
    return moved


def _of_integers(node: Node) -> bool:
    values = [v for v in (*node.inputs, *node.outputs) if v is not None]
    return all(v.dtype is not None and not v.dtype.is_float for v in values)
