"""OpenVINO's CPU plug-in with the hints it documents for latency."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

FORMAT = "onnx"
PRECISIONS = ("fp32", "bf16", "int8")


def open(
    model: Path, feeds: dict[str, np.ndarray], threads: int, precision: str
) -> Callable[[], list[np.ndarray]]:
    import openvino

    settings = {
        "INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": "1",
        "INFERENCE_PRECISION_HINT": "bf16" if precision == "bf16" else "f32",
    }  # fmt: skip
    compiled = openvino.Core().compile_model(str(model), "CPU", settings)
    request = compiled.create_infer_request()
    for port in compiled.inputs:
        value = next(feeds[name] for name in port.names if name in feeds)
        request.set_tensor(port, openvino.Tensor(value, shared_memory=False))
    count = len(compiled.outputs)

    def run() -> list[np.ndarray]:
        request.infer()
        return [request.get_output_tensor(i).data for i in range(count)]

    return run
