"""The frame of backends whose library opens a model file: ONNX Runtime, OpenVINO, LiteRT."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod

from ...errors import LiteError, UnsupportedOperatorError
from ...exporters.onnx import why_not, write_bytes
from ...ir import Graph, Node
from .._usability import Usability
from .contract import CONTRACT, CompiledGraph
from .subgraph import graph_of


class FileBackend(ABC):
    """A node is supported if the library accepts a file of it alone; the file is ONNX unless
    `write` makes another one."""

    contract = CONTRACT
    name: str

    def __init__(self) -> None:
        self._refusals: dict[bytes, str] = {}

    @abstractmethod
    def usability(self) -> Usability: ...

    @abstractmethod
    def open(self, model: bytes, *, threads: int, precision: str) -> CompiledGraph:
        """A file's graph, ready to run."""

    def write(self, graph: Graph) -> bytes:
        """A graph as a file. Raises LiteError for what the format lacks."""
        for node in graph.nodes:
            if why := why_not(node):
                raise UnsupportedOperatorError(why, (node.op,), where=node.name)
        return write_bytes(graph)

    def refusal(self, node: Node, model: bytes) -> str:
        """Why the library does not take the file of a node alone, "" when it does; exceptions of
        the library count as reasons."""
        self.open(model, threads=1, precision="fp32")
        return ""

    def supports(self, node: Node) -> str:
        try:
            model = self.write(graph_of(node))
        except LiteError as error:
            return error.what
        key = hashlib.blake2b(model, digest_size=20).digest()
        if key not in self._refusals:
            try:
                self._refusals[key] = self.refusal(node, model)
            except Exception as error:  # noqa: BLE001 - libraries' exceptions have no common base
                said = [line for line in str(error).splitlines() if line.strip()]
                self._refusals[key] = (said[0] if said else repr(error)).strip()[:200]
        return self._refusals[key]

    def compile(self, graph: Graph, *, threads: int, precision: str) -> CompiledGraph:
        return self.open(self.write(graph), threads=threads, precision=precision)
