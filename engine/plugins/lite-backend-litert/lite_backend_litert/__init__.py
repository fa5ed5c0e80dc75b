"""LiteRT as a backend: sub-graphs are written as TFLite files and run by its interpreter.

LITERT_BACKEND_DELEGATE names the shared library of a delegate; unset it is the CPU with XNNPACK.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from lite_engine.backends import Usability
from lite_engine.backends.plugins import FileBackend
from lite_engine.ir import Graph

__all__ = ["LiteRtBackend"]

DELEGATE = "LITERT_BACKEND_DELEGATE"


class LiteRtBackend(FileBackend):
    """Operators that the writer has and that an interpreter of the node alone accepts; fp32."""

    name = "litert"
    precisions = ("fp32",)

    def usability(self) -> Usability:
        from importlib.metadata import version

        from ai_edge_litert import interpreter

        where = "CPU"
        if delegate := os.environ.get(DELEGATE):
            try:
                interpreter.load_delegate(delegate)
            except (OSError, ValueError) as error:
                return Usability(
                    False,
                    f"the delegate {delegate} cannot be loaded: {error}",
                    f"set {DELEGATE} to a delegate's shared library, or unset it",
                )
            where = delegate
        return Usability(True, f"LiteRT {version('ai-edge-litert')}: {where}")

    def write(self, graph: Graph) -> bytes:
        from .writer import write_tflite

        return write_tflite(graph)

    def open(self, model: bytes, *, threads: int, precision: str) -> LiteRtGraph:
        from ai_edge_litert import interpreter

        delegate = os.environ.get(DELEGATE)
        given = [interpreter.load_delegate(delegate)] if delegate else None
        made = interpreter.Interpreter(
            model_content=model, num_threads=threads, experimental_delegates=given
        )
        made.allocate_tensors()
        return LiteRtGraph(made)


class LiteRtGraph:
    """An interpreter; its inputs and outputs are in the order of the graph's."""

    def __init__(self, interpreter: Any) -> None:
        self._interpreter = interpreter
        self._inputs = [d["index"] for d in interpreter.get_input_details()]
        self._outputs = [d["index"] for d in interpreter.get_output_details()]

    def run(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        for index, array in zip(self._inputs, inputs, strict=True):
            self._interpreter.set_tensor(index, array)
        self._interpreter.invoke()
        return [self._interpreter.get_tensor(index) for index in self._outputs]
