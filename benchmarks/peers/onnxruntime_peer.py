"""onnxruntime, CPU execution provider."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.nodes import names_in, nodes_in

FORMAT = "onnx"
PRECISIONS = ("fp32", "int8")


def open(
    model: Path, feeds: dict[str, np.ndarray], threads: int, precision: str
) -> Callable[[], list[np.ndarray]]:
    session = _session(model, threads)
    return lambda: list(session.run(None, feeds))


def _session(model: Path, threads: int, profile: str = "") -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    if profile:
        options.enable_profiling, options.profile_file_prefix = True, profile
    return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])


def layers(
    model: Path, feeds: dict[str, np.ndarray], threads: int, precision: str, runs: int
) -> list[dict[str, Any]]:
    known = names_in(model)
    with tempfile.TemporaryDirectory() as folder:
        session = _session(model, threads, f"{folder}/profile")
        for _ in range(runs):
            session.run(None, feeds)
        events = json.loads(Path(session.end_profiling()).read_text())
    least: dict[str, dict[str, Any]] = {}
    for event in events:
        name = event["name"].removesuffix("_kernel_time")
        if event.get("cat") == "Node" and name != event["name"]:
            made = {"nodes": [], "ms": event["dur"] / 1e3, "kernel": event["args"]["op_name"]}
            row = least.setdefault(name, made)
            row["ms"] = min(row["ms"], event["dur"] / 1e3)
    for name, row in least.items():
        row["nodes"] = nodes_in(name, known)
    return list(least.values())
