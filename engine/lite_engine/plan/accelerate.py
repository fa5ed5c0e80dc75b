"""A specialised graph shared between the host and accelerators: who takes which node, and in which
order the nodes then run, so that each accelerator gets sub-graphs as large as they can be.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from lite_messages import tr

from ..ir import Graph, Node, Value, node_reads
from .host_cost import host_ms
from .partition import Problem, cheapest, runs

#: Estimated ms of a launch and of a byte copied, where an accelerator states none.
LAUNCH_MS, MS_PER_BYTE = 0.05, 1.25e-7


class Accelerator(Protocol):
    """What the planner asks a backend of another package."""

    name: str

    def refusal(self, node: Node) -> str:
        """Why it cannot run a node; "" when it can."""
        ...

    def node_ms(self, node: Node, host_ms: float) -> float: ...

    def graph_ms(self, nodes: Sequence[Node], host_ms: float) -> float: ...

    def border_cost(self) -> tuple[float, float, float]:
        """ms for a launch, for each value copied, for every byte copied."""
        ...


@dataclass
class Sharing:
    """`taken`: node → accelerator; `left`: node → why the first accelerator does not take it;
    `estimates`: for each sub-graph its accelerator, its number of nodes and estimated ms."""

    taken: dict[str, str] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)
    estimates: list[tuple[str, int, float]] = field(default_factory=list)


def share(
    graph: Graph,
    accelerators: Sequence[Accelerator],
    *,
    free: bool,
    overrides: Mapping[str, str],
    refused: Mapping[str, str],
) -> Sharing:
    """Assigns nodes and sorts the graph's nodes accordingly. With `free` the first accelerator
    takes what is profitable; the others, and without it all of them, what `overrides` sends there.
    """
    made = Sharing()
    if not accelerators:
        return made
    nodes = graph.nodes
    host = [_host_ms(n) for n in nodes]
    by_name = {a.name: a for a in accelerators}
    for node in nodes:
        word = overrides.get(node.name, "")
        if word in by_name:
            why = refused.get(node.name) or _refusal(node, by_name[word])
            if why:
                made.left[node.name] = why
            else:
                made.taken[node.name] = word
    if free:
        _assign(graph, host, accelerators[0], overrides, refused, made)
    names = ["", *by_name]
    sides = [names.index(made.taken.get(n.name, "")) for n in nodes]
    if any(sides):
        _group(graph, host, by_name, names, sides, made, overrides)
    return made


def _assign(
    graph: Graph,
    host: Sequence[float],
    first: Accelerator,
    overrides: Mapping[str, str],
    refused: Mapping[str, str],
    made: Sharing,
) -> None:
    """The cheapest partition between the host and the first accelerator."""
    device = []
    for node, ms in zip(graph.nodes, host):
        if made.taken.get(node.name) == first.name:
            device.append(first.node_ms(node, ms))
            continue
        why = refused.get(node.name) or _refusal(node, first)
        if node.name in overrides or why:
            made.left.setdefault(node.name, why)
            device.append(math.inf)
        else:
            device.append(first.node_ms(node, ms))
    forced = [made.taken.get(n.name) == first.name for n in graph.nodes]
    problem = _problem(graph, [math.inf if f else h for f, h in zip(forced, host)], device, first)
    for node, there, ms in zip(graph.nodes, cheapest(problem), device):
        if there:
            made.taken[node.name] = first.name
        elif ms < math.inf:
            made.left[node.name] = tr(
                "copies and launches would take longer than {name} saves", name=first.name
            )


def _group(
    graph: Graph,
    host: Sequence[float],
    by_name: Mapping[str, Accelerator],
    names: Sequence[str],
    sides: list[int],
    made: Sharing,
    overrides: Mapping[str, str],
) -> None:
    """Orders the nodes; sub-graphs whose own estimate exceeds the host's go back to it."""
    nodes, order = graph.nodes, _problem(graph, host, host, None)
    for side, run in list(runs(order, sides)):
        if not side:
            continue
        accelerator, own = by_name[names[side]], [nodes[i] for i in run]
        there, here = (
            accelerator.graph_ms(own, sum(host[i] for i in run)),
            sum(host[i] for i in run),
        )
        if there > here and not any(n.name in overrides for n in own):
            for i in run:
                sides[i] = 0
                del made.taken[nodes[i].name]
                made.left[nodes[i].name] = tr(
                    "its sub-graph is estimated at {here:.3f} ms on the CPU, "
                    "{there:.3f} ms on {name}",
                    here=here,
                    name=accelerator.name,
                    there=there,
                )
        else:
            made.estimates.append((accelerator.name, len(run), there))
    graph.nodes = [nodes[i] for _, run in runs(order, sides) for i in run]


def _refusal(node: Node, accelerator: Accelerator) -> str:
    for value in (*node.inputs, *node.outputs):
        if value is not None and (value.dtype is None or not value.type.is_static):
            return tr("the shape of {name} depends on data", name=value.name)
    if any(True for _ in node.subgraphs()):
        return tr("{node} runs its subgraph step by step", node=node.op)
    return accelerator.refusal(node)


def _host_ms(node: Node) -> float:
    values = (*node.inputs, *node.outputs)
    known = all(v is None or (v.dtype is not None and v.type.is_static) for v in values)
    return host_ms(node) if known and not any(True for _ in node.subgraphs()) else 0.0


def _problem(
    graph: Graph, host: Sequence[float], device: Sequence[float], first: Accelerator | None
) -> Problem:
    launch, each, per_byte = first.border_cost() if first else (0.0, 0.0, 0.0)
    number: dict[int, int] = {}
    makers: list[int] = []
    nbytes: list[int] = []
    kept: list[Value] = []

    def index(value: Value, maker: int = -1) -> int:
        if id(value) not in number:
            number[id(value)] = len(makers)
            kept.append(value)
            makers.append(maker)
            known = value.dtype is not None and value.type.is_static
            nbytes.append(value.type.nbytes if known else 0)
        return number[id(value)]

    inside = {id(v) for v in graph.inputs} | {id(v) for n in graph.nodes for v in n.outputs}
    for value in graph.inputs:
        index(value)
    reads = []
    for i, node in enumerate(graph.nodes):
        seen = {id(v): v for v in node_reads(node) if v.const is None and id(v) in inside}
        reads.append([index(v) for v in seen.values()])
        for value in node.outputs:
            index(value, i)
    outputs = frozenset(index(v) for v in graph.outputs if id(v) in inside)
    return Problem(host, device, reads, makers, nbytes, outputs, launch, each, per_byte)
