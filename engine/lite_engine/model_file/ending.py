"""Where a model has to end for the runner without Python to take it."""

from __future__ import annotations

from collections.abc import Collection, Container

from ..ir import Graph, Node, Value, node_reads
from ..ops import find_op

#: A longer list would be no ending but a model that such a runner cannot run.
MOST = 6


def with_layers(graph: Graph) -> Graph:
    """A copy whose nodes have as sources the one of the graph that they come from, those in
    branches too: what stands in a layer's place when a program is made still tells of it."""
    out = graph.copy()
    for node in out.nodes:
        _mark(node, node.name)
    return out


def _mark(node: Node, layer: str) -> None:
    node.sources = (layer,)
    for _, branch in node.subgraphs():
        for inner in branch.nodes:
            _mark(inner, layer)


def native_ends(graph: Graph, python: Container[str]) -> list[str]:
    """Names of the values with which the part of the graph ends that native kernels compute, which
    is all but what needs the layers `python`; none where that part is empty or ends everywhere. A
    suppression of overlapping boxes may be its last step (passes/fixed_rows), whoever reads what it
    finds."""
    computed: list[Value] = []
    ready = {id(v) for v in graph.inputs}
    known = ready | {id(v) for node in graph.nodes for v in node.outputs}
    left: set[int] = set()  # what the rest reads
    for node in graph.nodes:
        reads = known.intersection(map(id, node_reads(node)))  # not what is inside its branches
        op = find_op(node.op)
        native = reads <= ready and node.name not in python
        if native or (reads <= ready and op is not None and "padded" in op.attrs):
            computed += node.outputs
        if native:
            ready.update(id(v) for v in node.outputs)
        else:
            left |= reads
    ends = [v.name for v in computed if graph.is_output(v) or id(v) not in ready or id(v) in left]
    return ends if len(ends) <= MOST else []


def ended(graph: Graph, names: Collection[str]) -> Graph:
    """A copy that ends with the values of these names."""
    out = graph.copy()
    out.outputs = [v for node in out.nodes for v in node.outputs if v.name in names]
    out.remove_unread()
    return out
