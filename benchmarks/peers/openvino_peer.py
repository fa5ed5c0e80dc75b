"""OpenVINO's CPU plug-in with the hints it documents for latency."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

FORMAT = "onnx"
PRECISIONS = ("fp32", "bf16", "fp16", "int8")


#: Its names of our precisions.
HINTS = {"bf16": "bf16", "fp16": "f16"}


def open(
    model: Path, feeds: dict[str, np.ndarray], threads: int, precision: str
) -> Callable[[], list[np.ndarray]]:
    compiled, request = _compiled(model, feeds, threads, precision)
    count = len(compiled.outputs)

    def run() -> list[np.ndarray]:
        request.infer()
        return [request.get_output_tensor(i).data for i in range(count)]

    return run


def _compiled(
    model: Path, feeds: dict[str, np.ndarray], threads: int, precision: str, **more: str
) -> tuple[Any, Any]:
    import openvino

    settings = {
        "INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": "1",
        "INFERENCE_PRECISION_HINT": HINTS.get(precision, "f32"), **more,
    }  # fmt: skip
    compiled = openvino.Core().compile_model(str(model), "CPU", settings)
    request = compiled.create_infer_request()
    for port in compiled.inputs:
        value = next(feeds[name] for name in port.names if name in feeds)
        request.set_tensor(port, openvino.Tensor(value, shared_memory=False))
    return compiled, request


def layers(
    model: Path, feeds: dict[str, np.ndarray], threads: int, precision: str, runs: int
) -> list[dict[str, Any]]:
    compiled, request = _compiled(model, feeds, threads, precision, PERF_COUNT="YES")
    nodes: dict[str, list[str]] = {}
    for node in compiled.get_runtime_model().get_ops():
        info = node.get_rt_info()
        if "originalLayersNames" in info:
            nodes[node.get_friendly_name()] = str(info["originalLayersNames"].value).split(",")
    least: dict[str, dict[str, Any]] = {}
    for _ in range(runs):
        request.infer()
        for row in request.get_profiling_info():
            took = row.real_time.total_seconds() * 1e3
            made = {"nodes": nodes.get(row.node_name, []), "ms": took, "kernel": row.exec_type}
            kept = least.setdefault(row.node_name, made)
            kept["ms"] = min(kept["ms"], took)
    return [row for row in least.values() if row["ms"] > 0]
