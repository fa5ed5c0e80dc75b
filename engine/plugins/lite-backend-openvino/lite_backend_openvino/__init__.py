"""OpenVINO as a backend: sub-graphs are compiled for a device of it, the CPU unless
OPENVINO_BACKEND_DEVICE names another one, like GPU, NPU or AUTO.
"""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from lite_engine.backends import Usability
from lite_engine.backends.plugins import FileBackend
from lite_engine.ir import DType, Graph, Node

__all__ = ["OpenVinoBackend"]

DEVICE = "OPENVINO_BACKEND_DEVICE"


def _device() -> str:
    return os.environ.get(DEVICE, "CPU")


class OpenVinoBackend(FileBackend):
    """What its ONNX frontend reads and its device can be asked for, one node at a time. fp32 is
    computed in f32, fp16 in f16 where the device has it."""

    name = "openvino"
    precisions = ("fp32", "fp16", "int8")

    @cached_property
    def _core(self) -> Any:
        import openvino

        return openvino.Core()

    def usability(self) -> Usability:
        import openvino

        here = self._core.available_devices
        if _device() not in (*here, "AUTO"):
            return Usability(
                False,
                f"OpenVINO {openvino.__version__} finds no device {_device()}",
                f"set {DEVICE} to one of {', '.join(here)}, or install the device's driver",
            )
        return Usability(True, f"OpenVINO {openvino.__version__}: {_device()}")

    def refusal(self, node: Node, model: bytes) -> str:
        """Whether its frontend reads the file and the device takes what it made of it."""
        if any(v is not None and v.dtype is DType.BF16 for v in node.inputs):
            return "bf16 values are not NumPy arrays there"
        try:
            read = self._core.read_model(io.BytesIO(model))
            # constants among the layers run nowhere, and no device lists them
            taken = self._core.query_model(read, "CPU" if _device() == "AUTO" else _device())
        except RuntimeError as error:
            return str(error).strip().splitlines()[-1][:200]
        quiet = ("Parameter", "Result", "Constant")
        left = [
            o for o in read.get_ops()
            if o.get_type_name() not in quiet and o.get_friendly_name() not in taken
        ]  # fmt: skip
        return f"the device has no {left[0].get_type_name()}" if left else ""

    def open(self, model: bytes, *, threads: int, precision: str) -> OpenVinoGraph:
        read = self._core.read_model(io.BytesIO(model))
        return OpenVinoGraph(self._core.compile_model(read, _device(), _config(threads, precision)))

    # ---- compiled graphs that are kept

    def version(self) -> str:
        import openvino

        name = self._core.get_property(_device(), "FULL_DEVICE_NAME") if _device() != "AUTO" else ""
        return f"{openvino.__version__} {_device()} {name}"

    def save(self, compiled: OpenVinoGraph) -> bytes:
        return compiled.blob()

    def restore(self, blob: bytes, graph: Graph, *, threads: int, precision: str) -> OpenVinoGraph:
        model = self._core.import_model(io.BytesIO(blob), _device(), _config(threads, precision))
        return OpenVinoGraph(model)


def _config(threads: int, precision: str) -> dict[str, Any]:
    config: dict[str, Any] = {"PERFORMANCE_HINT": "LATENCY"}
    if _device() == "CPU":
        config["INFERENCE_NUM_THREADS"] = threads
    config["INFERENCE_PRECISION_HINT"] = "f16" if precision == "fp16" else "f32"
    return config


class OpenVinoGraph:
    """A compiled model and its one request."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._request = model.create_infer_request()

    def run(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        self._request.infer(dict(enumerate(inputs)))
        return [
            self._request.get_output_tensor(i).data.copy() for i in range(len(self._model.outputs))
        ]

    def blob(self) -> bytes:
        stream = io.BytesIO()
        self._model.export_model(stream)
        return stream.getvalue()
