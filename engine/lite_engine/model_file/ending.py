"""Where a model has to end for the runner without Python to take it."""

from __future__ import annotations

from collections.abc import Container

from ..ir import Graph, Value
from ..ops import find_op

#: A longer list would be no ending but a model that such a runner cannot run.
MOST = 6


def native_ends(graph: Graph, python: Container[str]) -> list[str]:
    """Names of the values with which the part of the graph ends that native kernels compute, which
    is all but what needs the layers `python`; none where that part is empty or ends everywhere. A
    suppression of overlapping boxes may be its last step (passes/fixed_rows), whoever reads what it
    finds."""
    computed: list[Value] = []
    ready = {id(v) for v in graph.inputs}
    for node in graph.nodes:
        if any(v is not None and not v.is_const and id(v) not in ready for v in node.inputs):
            continue
        op = find_op(node.op)
        native = node.name not in python
        if native:
            ready.update(id(v) for v in node.outputs)
        if native or (op is not None and "padded" in op.attrs):
            computed += node.outputs
    ends = [
        v.name
        for v in computed
        if graph.is_output(v)
        or id(v) not in ready
        or any(id(out) not in ready for reader in v.readers for out in reader.outputs)
    ]
    return ends if len(ends) <= MOST else []
