"""How quantisation runs graphs: through a callable that the runtime may replace by a fast one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import Graph, Node
from ..ops import run_node

Feeds = Mapping[str, np.ndarray]


class Run(Protocol):
    """run(graph, feeds, taps) → the graph's outputs and the values named in `taps`, by name.

    Values of a quantised graph that fusion took away may be left out.
    """

    def __call__(
        self, graph: Graph, feeds: Feeds, taps: Sequence[str] = ()
    ) -> dict[str, np.ndarray]: ...


class Latency(Protocol):
    """Milliseconds that a run of a quantized graph takes where it is meant to run."""

    def __call__(self, graph: Graph) -> float: ...


def reference_run(graph: Graph, feeds: Feeds, taps: Sequence[str] = ()) -> dict[str, np.ndarray]:
    """The operators' NumPy references, freeing values after their last reader.

    Raises ShapeError when an input is missing.
    """
    wanted = {v.name for v in graph.outputs} | set(taps)
    held: dict[int, np.ndarray] = {}
    out: dict[str, np.ndarray] = {}
    for value in graph.inputs:
        if value.name not in feeds:
            raise ShapeError(tr("no value for input {name}", name=value.name))
        held[id(value)] = feeds[value.name]
        if value.name in wanted:
            out[value.name] = feeds[value.name]
    last = _last_readers(graph)
    for node in graph.nodes:
        arrays = [
            None if v is None else v.const if v.const is not None else held[id(v)]
            for v in node.inputs
        ]
        for value, array in zip(node.outputs, run_node(node, arrays)):
            held[id(value)] = array
            if value.name in wanted:
                out[value.name] = array
        for key in last.get(id(node), ()):
            held.pop(key, None)
    for value in graph.outputs:
        if value.const is not None:
            out[value.name] = value.const
    return out


def _last_readers(graph: Graph) -> dict[int, list[int]]:
    """node id → ids of the values that it reads last."""
    last: dict[int, Node] = {}
    for node in graph.nodes:
        for value in node.inputs:
            if value is not None and value.const is None:
                last[id(value)] = node
    found: dict[int, list[int]] = {}
    for key, node in last.items():
        found.setdefault(id(node), []).append(key)
    return found
