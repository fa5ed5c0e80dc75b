"""ncnn, from the files that pnnx writes (`m.ncnn.param`, `m.ncnn.bin` in one folder)."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

FORMAT = "ncnn"
PRECISIONS = ("fp32", "bf16", "fp16")


def convert(onnx: Path, out: Path, precision: str) -> None:
    # NOTE: importing pnnx needs torch, its program does not.
    spec = importlib.util.find_spec("pnnx")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("no module named 'pnnx'")
    program = Path(spec.origin).with_name("pnnx")
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(onnx, Path(folder) / "m.onnx")
        subprocess.run(
            [str(program), "m.onnx", "fp16=0"], cwd=folder, check=True, timeout=300,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        out.mkdir()
        for name in ("m.ncnn.param", "m.ncnn.bin"):
            shutil.move(Path(folder) / name, out / name)


def open(
    model: Path, feeds: dict[str, np.ndarray], threads: int, precision: str
) -> Callable[[], list[np.ndarray]]:
    import ncnn

    net = ncnn.Net()
    options = net.opt
    options.num_threads, options.use_vulkan_compute = threads, False
    half = precision == "fp16"
    options.use_fp16_packed = options.use_fp16_storage = options.use_fp16_arithmetic = half
    options.use_bf16_storage = options.use_bf16_packed = precision == "bf16"
    for file, load in (("m.ncnn.param", net.load_param), ("m.ncnn.bin", net.load_model)):
        if load(str(model / file)):
            raise RuntimeError(f"ncnn does not load {model / file}")
    inputs = dict(zip(sorted(net.input_names()), feeds.values(), strict=True))
    mats = {name: ncnn.Mat(value[0]).clone() for name, value in inputs.items()}
    names = sorted(net.output_names())

    def run() -> list[np.ndarray]:
        extractor = net.create_extractor()
        for name, mat in mats.items():
            extractor.input(name, mat)
        # No view of a result outlives the extractor.
        return [np.array(extractor.extract(name)[1])[None] for name in names]

    return run
