"""MNN's session interface."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

FORMAT = "mnn"
PRECISIONS = ("fp32", "bf16")


def convert(onnx: Path, out: Path, precision: str) -> None:
    # NOTE: not MNN.tools: importing that, or `mnnconvert`, runs `pip install` of a logging service.
    import _tools

    _tools.mnnconvert(
        ["mnnconvert", "-f", "ONNX", "--modelFile", str(onnx), "--MNNModel", str(out),
         "--bizCode", "bench"]
    )  # fmt: skip


def open(
    model: Path, feeds: dict[str, np.ndarray], threads: int, precision: str
) -> Callable[[], list[np.ndarray]]:
    import MNN

    net = MNN.Interpreter(str(model))
    session = net.createSession(
        {"backend": "CPU", "numThread": threads,
         "precision": "low" if precision == "bf16" else "high"}
    )  # fmt: skip
    for name, tensor in net.getSessionInputAll(session).items():
        value = feeds[name]
        kind = MNN.Halide_Type_Int64 if value.dtype == np.int64 else MNN.Halide_Type_Float
        tensor.copyFrom(MNN.Tensor(value.shape, kind, value, MNN.Tensor_DimensionType_Caffe))
    outputs = [tensor for _, tensor in sorted(net.getSessionOutputAll(session).items())]
    held = [
        MNN.Tensor(t.getShape(), MNN.Halide_Type_Float, np.zeros(t.getShape(), np.float32),
                   MNN.Tensor_DimensionType_Caffe)
        for t in outputs
    ]  # fmt: skip

    def run() -> list[np.ndarray]:
        net.runSession(session)
        for tensor, copy in zip(outputs, held, strict=True):
            tensor.copyToHostTensor(copy)
        return [np.asarray(c.getNumpyData()).reshape(c.getShape()) for c in held]

    return run
