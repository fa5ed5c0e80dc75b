"""A backend of a few lines for tests: NumPy's reference, with the faults that a test asks for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from lite_engine.backends import Usability
from lite_engine.backends.reference import run_graph
from lite_engine.ir import Graph, Node


class Toy:
    contract = 1
    name = "toy"
    precisions = ("fp32",)

    def __init__(
        self,
        refuses: Callable[[Node], str] = lambda node: "",
        spoil: Callable[[list[np.ndarray]], list[np.ndarray]] | None = None,
        change: Callable[[Graph], None] = lambda graph: None,
    ) -> None:
        self.refuses, self.spoil, self.change = refuses, spoil, change
        self.graphs: list[Graph] = []

    def usability(self) -> Usability:
        return Usability(True, "a toy")

    def supports(self, node: Node) -> str:
        return self.refuses(node)

    def border_cost(self) -> tuple[float, float, float]:
        return 0.0, 0.0, 0.0

    def node_ms(self, node: Node) -> float:
        return 0.0

    def graph_ms(self, nodes: Sequence[Node]) -> float:
        return 0.0

    def compile(self, graph: Graph, *, threads: int, precision: str) -> ToyGraph:
        self.graphs.append(graph)
        self.change(graph)
        return ToyGraph(graph, self.spoil)


class ToyGraph:
    def __init__(self, graph: Graph, spoil) -> None:
        self.graph, self.spoil = graph, spoil

    def run(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        results = run_graph(self.graph, inputs)
        return self.spoil(results) if self.spoil else results
