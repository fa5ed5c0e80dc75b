"""The contract of a backend from another package, version 1.

A distribution names its class under the entry point group `lite_engine.backends`; the class takes
no arguments. The engine gives it sub-graphs as `Graph`s with fixed shapes and ONNX semantics, NCHW,
constants in place (`lite_engine.exporters.onnx` writes them as ONNX), and NumPy arrays in the order
of the graph's inputs. Whatever a plug-in raises costs the sub-graph at hand, never the run: the CPU
takes it, and the plan says why.

`Estimates`, `Borders`, `Precisions`, `Cached` and `Portable` are a backend's own choice, `Timed`
and `Tapped` a compiled graph's: the engine asks with isinstance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from ...ir import Graph, Node
from .._usability import Usability

#: What a plug-in's `contract` must be. Another number means that one of these calls has changed.
CONTRACT = 1


@runtime_checkable
class CompiledGraph(Protocol):
    """A sub-graph that is ready to run. Not for two threads at once."""

    def run(self, inputs: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        """Outputs in the order of `graph.outputs`, of just their types and shapes."""
        ...


@runtime_checkable
class BackendPlugin(Protocol):
    """What every plug-in has."""

    contract: int
    name: str

    def usability(self) -> Usability:
        """Whether it works here, why, and how to fix it. Asked in another process first, under a
        time limit, so a library that crashes or hangs while it is opened is told apart."""
        ...

    def supports(self, node: Node) -> str:
        """Why it cannot run a node, with its types and constants; "" when it can."""
        ...

    def compile(self, graph: Graph, *, threads: int, precision: str) -> CompiledGraph: ...


@runtime_checkable
class Estimates(Protocol):
    """Without it a node is taken to need half of what the CPU is estimated to need."""

    def node_ms(self, node: Node) -> float:
        """Estimated time of a node within a sub-graph."""
        ...

    def graph_ms(self, nodes: Sequence[Node]) -> float:
        """Estimated time of a sub-graph, launch included, copies left out. A sub-graph for which
        this is more than the CPU's estimate goes back to the CPU."""
        ...


@runtime_checkable
class Borders(Protocol):
    """Where its memory is not the host's. Without it a launch counts 0.05 ms, a copy what the
    host's memory takes."""

    def border_cost(self) -> tuple[float, float, float]:
        """ms for each launch of a sub-graph, for each value copied, for every byte copied."""
        ...


@runtime_checkable
class Precisions(Protocol):
    """Without it a plug-in computes in fp32."""

    precisions: Sequence[str]


@runtime_checkable
class Cached(Protocol):
    """A backend whose compiled graphs can be kept in the cache folder, and in a `.lite` file."""

    def version(self) -> str:
        """Of the library, its device and its driver: a blob is restored under the same one only."""
        ...

    def save(self, compiled: CompiledGraph) -> bytes: ...

    def restore(
        self, blob: bytes, graph: Graph, *, threads: int, precision: str
    ) -> CompiledGraph: ...


@runtime_checkable
class Portable(Protocol):
    """A backend whose sub-graphs also run without Python: a shared library with a kernel for
    `backend::NAME` (lite_plugin.h) gets as first input what this made of the sub-graph."""

    def blob(self, graph: Graph) -> bytes: ...


@runtime_checkable
class Timed(Protocol):
    """A compiled graph that knows its nodes' times. Without it a profile shares the time of the
    whole sub-graph among its layers by their estimates, and says so."""

    def times(self) -> Mapping[str, tuple[int, int]]:
        """Node → (start, end) in ns from the start of the last run; a node that was fused into
        another is left out."""
        ...


@runtime_checkable
class Tapped(Protocol):
    """A compiled graph that can keep inner values. Without it the engine compiles the graph again
    with these values among its outputs."""

    def tap(self, names: Sequence[str]) -> None: ...

    def tapped(self, name: str) -> np.ndarray: ...
