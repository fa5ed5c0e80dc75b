"""A segment of a plug-in as a graph of its own, and the tensors that its values lie in."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...ir import Graph, Node, Value
from ...plan import Plan, Segment


class Subgraph:
    """`graph` is the segment's; `inputs` and `made` map its values to the tensors of the plan."""

    def __init__(self, segment: Segment) -> None:
        plan = self.plan = segment.plan
        self.graph = Graph(f"{segment.backend} sub-graph")
        self.inputs: list[int] = []
        #: tensor → value that a step writes into it
        self.made: dict[int, Value] = {}
        copies: dict[int, Value] = {}
        for step in plan.steps:
            assert step.node is not None
            given = []
            for value, tensor in zip(step.node.inputs, step.inputs):
                given.append(None if value is None else self._copy(value, tensor, copies))
            outputs = [Value(v.name, v.dtype, v.shape) for v in step.node.outputs]
            for old, new, tensor in zip(step.node.outputs, outputs, step.outputs):
                copies[id(old)] = self.made[tensor] = new
            node = step.node
            self.graph.nodes.append(
                Node(node.op, given, outputs, node.attrs, name=node.name, sources=node.sources,
                     domain=node.domain)
            )  # fmt: skip
        self.outputs = [self.made[i] for i in plan.outputs]
        self.graph.outputs = list(self.outputs)

    def _copy(self, value: Value, tensor: int, copies: dict[int, Value]) -> Value:
        if id(value) not in copies:
            copies[id(value)] = Value(value.name, value.dtype, value.shape, const=value.const)
            if value.const is None:
                self.graph.inputs.append(copies[id(value)])
                self.inputs.append(tensor)
        return copies[id(value)]

    def read(self, arrays: Mapping[int, np.ndarray]) -> list[np.ndarray]:
        """What the segment got, as the graph's inputs, logical and C-contiguous."""
        return [
            np.ascontiguousarray(self.plan.tensors[i].to_logical(_physical(self.plan, i, arrays)))
            for i in self.inputs
        ]


def graph_of(node: Node) -> Graph:
    """A graph of that node alone, constants included, for a library that is asked what it takes."""
    graph = Graph(node.name)
    copies: dict[int, Value] = {}
    for value in node.inputs:
        if value is not None and id(value) not in copies:
            copies[id(value)] = Value(value.name, value.dtype, value.shape, const=value.const)
            if value.const is None:
                graph.inputs.append(copies[id(value)])
    inputs = [None if v is None else copies[id(v)] for v in node.inputs]
    graph.outputs = [Value(v.name, v.dtype, v.shape) for v in node.outputs]
    graph.nodes = [Node(node.op, inputs, graph.outputs, node.attrs, name=node.name)]
    return graph


def _physical(plan: Plan, index: int, arrays: Mapping[int, np.ndarray]) -> np.ndarray:
    """A view of a value reads its owner's bytes."""
    while index not in arrays:
        owner = plan.tensors[index].alias_of
        assert owner is not None
        index = owner
    return arrays[index]
