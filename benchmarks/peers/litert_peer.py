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


def convert(onnx: Path, out: Path, precision: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        # onnx2tf would download this file: any images of its shape do.
        images = np.random.default_rng(0).random((20, 128, 128, 3), np.float32)
        np.save(Path(folder) / "calibration_image_sample_data_20x128x128x3_float32.npy", images)
        subprocess.run(
            [sys.executable, "-m", "onnx2tf", "-i", str(onnx), "-o", "tf", "-n", "-nuo"],
            cwd=folder, check=True, timeout=1800, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        )  # fmt: skip
        next((Path(folder) / "tf").glob("*_float32.tflite")).rename(out)


def quantise(model: Path, out: Path, feeds: Path) -> None:
    """i8 activations, i8 weights per channel, calibrated on the network's own seeded inputs; inputs
    and outputs stay floats. Bodies of loops cannot be calibrated: a network that has any gets i8
    weights, and activations are quantised by each run (LiteRT's "dynamic" int8)."""
    from ai_edge_litert.interpreter import Interpreter
    from ai_edge_quantizer import quantizer, recipe

    content = _with_signature(model)
    if Interpreter(model_content=content).num_subgraphs() > 1:
        made = quantizer.Quantizer(content, recipe.dynamic_wi8_afp32()).quantize()
        out.write_bytes(made.quantized_model)
        return
    (name, signature), *_ = Interpreter(model_content=content).get_signature_list().items()
    with np.load(feeds) as file:
        values = [_channels_last(file[key]) for key in file.files]
    sample = dict(zip(signature["inputs"], values, strict=True))
    rules = recipe.static_wi8_ai8()
    rules += [
        {"regex": ".*", "operation": end, "algorithm_key": "no_quantize", "op_config": {}}
        for end in ("INPUT", "OUTPUT")
    ]
    made = quantizer.Quantizer(content, rules)
    made.quantize(made.calibrate({name: [sample]}), serialize_to_path=str(out))


def _with_signature(model: Path) -> bytes:
    """onnx2tf writes some files without the names by which the quantiser feeds inputs."""
    from ai_edge_litert.tools import flatbuffer_utils

    read = flatbuffer_utils.read_model(str(model))
    if not read.signatureDefs:
        graph = read.subgraphs[0]
        signature = flatbuffer_utils.schema_fb.SignatureDefT()
        signature.signatureKey, signature.subgraphIndex = "serving_default", 0
        for kind, tensors in (("inputs", graph.inputs), ("outputs", graph.outputs)):
            maps = []
            for index in tensors:
                named = flatbuffer_utils.schema_fb.TensorMapT()
                named.name, named.tensorIndex = graph.tensors[index].name, index
                maps.append(named)
            setattr(signature, kind, maps)
        read.signatureDefs = [signature]
    return bytes(flatbuffer_utils.convert_object_to_bytearray(read))


def _channels_last(value: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(value.transpose(0, 2, 3, 1)) if value.ndim == 4 else value


def open(
    model: Path, feeds: dict[str, np.ndarray], threads: int, precision: str
) -> Callable[[], list[np.ndarray]]:
    from ai_edge_litert.interpreter import Interpreter

    net = Interpreter(model_path=str(model), num_threads=threads)
    net.allocate_tensors()
    details = net.get_input_details()
    for detail, value in zip(details, feeds.values(), strict=True):
        net.set_tensor(detail["index"], _channels_last(value).astype(detail["dtype"]))
    outputs = net.get_output_details()

    def run() -> list[np.ndarray]:
        net.invoke()
        return [net.get_tensor(o["index"]) for o in outputs]

    return run
