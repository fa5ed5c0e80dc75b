"""onnxruntime, CPU execution provider."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

FORMAT = "onnx"
PRECISIONS = ("fp32", "int8")


def open(
    model: Path, feeds: dict[str, np.ndarray], threads: int, precision: str
) -> Callable[[], list[np.ndarray]]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    return lambda: list(session.run(None, feeds))
