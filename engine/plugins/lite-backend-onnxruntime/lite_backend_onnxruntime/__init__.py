"""ONNX Runtime as a backend: sub-graphs run in an InferenceSession of any execution provider.

ONNXRUNTIME_BACKEND_PROVIDERS lists providers in the order of preference, like
`CUDAExecutionProvider,CPUExecutionProvider`; unset it is the CPU.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
from lite_engine.backends import Usability
from lite_engine.backends.plugins import CONTRACT, graph_of
from lite_engine.exporters.onnx import why_not, write_bytes
from lite_engine.ir import Graph, Node

__all__ = ["OnnxRuntimeBackend"]

PROVIDERS = "ONNXRUNTIME_BACKEND_PROVIDERS"


def _providers() -> list[str]:
    return [p.strip() for p in os.environ.get(PROVIDERS, "CPUExecutionProvider").split(",")]


class OnnxRuntimeBackend:
    """What ONNX Runtime's kernels run, one node at a time tells; it computes in fp32, and in the
    graph's own integers."""

    contract = CONTRACT
    name = "onnxruntime"
    precisions = ("fp32", "int8")

    def __init__(self) -> None:
        self._refusals: dict[bytes, str] = {}

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

    def supports(self, node: Node) -> str:
        """Whether a session of this node alone can be made."""
        refused = why_not(node)
        if refused:
            return refused
        model = write_bytes(graph_of(node))
        if model not in self._refusals:
            try:
                _session(model, threads=1, optimise=False)
                self._refusals[model] = ""
            except Exception as error:  # noqa: BLE001 - onnxruntime's exceptions have no common base
                self._refusals[model] = str(error).strip().splitlines()[0][:200]
        return self._refusals[model]

    def compile(self, graph: Graph, *, threads: int, precision: str) -> OnnxRuntimeGraph:
        session = _session(write_bytes(graph), threads=threads, optimise=True)
        return OnnxRuntimeGraph(session)


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
