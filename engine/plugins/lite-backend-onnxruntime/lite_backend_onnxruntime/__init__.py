"""ONNX Runtime as a backend: sub-graphs run in an InferenceSession of any execution provider.

ONNXRUNTIME_BACKEND_PROVIDERS lists providers in the order of preference, like
`CUDAExecutionProvider,CPUExecutionProvider`; unset it is the CPU.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
from lite_engine.backends import Usability
from lite_engine.backends.plugins import FileBackend
from lite_engine.ir import Node

__all__ = ["OnnxRuntimeBackend"]

PROVIDERS = "ONNXRUNTIME_BACKEND_PROVIDERS"


def _providers() -> list[str]:
    return [p.strip() for p in os.environ.get(PROVIDERS, "CPUExecutionProvider").split(",")]


class OnnxRuntimeBackend(FileBackend):
    """What ONNX Runtime's kernels run, one node at a time tells; it computes in fp32, and in the
    graph's own integers."""

    name = "onnxruntime"
    precisions = ("fp32", "int8")

    def usability(self) -> Usability:
        import onnxruntime

        here, wanted = onnxruntime.get_available_providers(), _providers()
        missing = [p for p in wanted if p not in here]
        if missing:
            return Usability(
                False,
                f"ONNX Runtime {onnxruntime.__version__} has no {missing[0]}",
                f"set {PROVIDERS} to some of {','.join(here)}",
            )
        return Usability(True, f"ONNX Runtime {onnxruntime.__version__}: {', '.join(wanted)}")

    def refusal(self, node: Node, model: bytes) -> str:
        _session(model, threads=1, optimise=False)
        return ""

    def open(self, model: bytes, *, threads: int, precision: str) -> OnnxRuntimeGraph:
        return OnnxRuntimeGraph(_session(model, threads=threads, optimise=True))


class OnnxRuntimeGraph:
    """A session; its inputs and outputs are in the order of the graph's."""

    def __init__(self, session) -> None:  # type: ignore[no-untyped-def]
        self._session = session
        self._names = [i.name for i in session.get_inputs()]

    def run(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        return list(self._session.run(None, dict(zip(self._names, inputs, strict=True))))


def _session(model: bytes, *, threads: int, optimise: bool):  # type: ignore[no-untyped-def]
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4  # what fails is raised, and told by the engine
    if not optimise:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model, options, providers=_providers())
