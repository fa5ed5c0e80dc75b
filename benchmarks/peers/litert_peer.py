"""LiteRT with its default delegate (XNNPACK), from what onnx2tf writes (channels last)."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

FORMAT = "tflite"
PRECISIONS = ("fp32", "int8")
QUANTISES = True


def convert(onnx: Path, out: Path, precision: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        # onnx2tf would download this file: any images of its shape do.
        images = np.random.default_rng(0).random((20, 128, 128, 3), np.float32)
        np.save(Path(folder) / "calibration_image_sample_data_20x128x128x3_float32.npy", images)
        options = ["-oiqt"] if precision == "int8" else []
        subprocess.run(
            [sys.executable, "-m", "onnx2tf", "-i", str(onnx), "-o", "tf", "-n", "-nuo", *options],
            cwd=folder, check=True, timeout=1800, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        )  # fmt: skip
        ending = "full_integer_quant" if precision == "int8" else "float32"
        next((Path(folder) / "tf").glob(f"*_{ending}.tflite")).rename(out)


def open(
    model: Path, feeds: dict[str, np.ndarray], threads: int, precision: str
) -> Callable[[], list[np.ndarray]]:
    from ai_edge_litert.interpreter import Interpreter

    net = Interpreter(model_path=str(model), num_threads=threads)
    net.allocate_tensors()
    details = net.get_input_details()
    for detail, value in zip(details, feeds.values(), strict=True):
        if value.ndim == 4:
            value = np.ascontiguousarray(value.transpose(0, 2, 3, 1))
        scale, zero = detail["quantization"]
        if scale:
            limits = np.iinfo(detail["dtype"])
            value = np.clip(np.rint(value / scale) + zero, limits.min, limits.max)
        net.set_tensor(detail["index"], value.astype(detail["dtype"]))
    outputs = net.get_output_details()

    def run() -> list[np.ndarray]:
        net.invoke()
        return [net.get_tensor(o["index"]) for o in outputs]

    return run
