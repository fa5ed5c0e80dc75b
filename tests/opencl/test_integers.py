"""Integers on OpenCL: exactly the reference's, whole models included."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from lite_engine import Predictor
from lite_engine._native import host_arch
from lite_engine.backends.opencl.cases.integers import integers
from lite_engine.backends.opencl.integer_elementwise import thresholds
from lite_engine.ir import DType
from lite_engine.model_file import optimize, read_model
from lite_engine.runtime.inputs import random_feeds
from lite_workbench.quantizing import calibrated

from tests.opencl.tiny import check
from tests.small_models import classifier


@pytest.mark.opencl
@pytest.mark.parametrize("kernel", integers())
def test_exact(kernel: str) -> None:
    for graph in integers()[kernel]:
        check(graph, tolerance=0)


@pytest.mark.parametrize("scale, zero", [(1 / 256, 0), (0.0039, 3), (0.0031, 128), (1e-9, 0)])
def test_thresholds_are_those_of_double_arithmetic(scale: float, zero: int) -> None:
    """Against e / S in float64, at quotients next to each threshold and far from them."""
    scale = float(np.float32(scale))
    lowest, factors, shifts, above = thresholds(scale, zero)
    total = (1 << 30) + 12345
    rng = np.random.default_rng(5)
    near = [int(Fraction(int(m), 1 << int(s)) * total) + k
            for m, s in zip(factors[:-1], shifts) for k in (0, 1)]  # fmt: skip
    for e in [0, 1, 1 << 30, *near, *rng.integers(0, 1 << 30, 300).tolist()]:
        exact = np.clip(np.rint(np.float64(e) / np.float64(total) / scale) + zero, 0, 255)
        reached = sum(
            e << int(s) >= total * int(m) + int(a) for m, s, a in zip(factors, shifts, above)
        )
        assert lowest + reached == exact, e


@pytest.mark.opencl
@pytest.mark.cpu
@pytest.mark.arm
def test_one_file_has_the_same_integers_everywhere(tmp_path: Path) -> None:
    """On x86, emulated ARM and OpenCL, to the last layer in integers."""
    model = optimize(classifier(), targets=["x86", "arm", "opencl"])
    samples = [random_feeds(model.graph, seed=seed) for seed in range(4)]
    path = calibrated(model, samples).save(tmp_path / "one.lite")
    graph = read_model(path).graph
    names = [v.name for n in graph.nodes for v in n.outputs if v.dtype in (DType.I8, DType.U8)]
    weights = [v for v in graph.constants() if v.dtype is DType.I8]
    assert len(names) > 5 and weights
    runs = [Predictor(path, b).run(samples[0], taps=names) for b in ("x86", "arm", "opencl")]
    for name in names:
        for other in runs[1:]:
            np.testing.assert_array_equal(other[name], runs[0][name], name)


MODELS = (
    "tflite/mobilenet_v1_0.25_224_quant.tflite", "tflite/vww_96_int8.tflite",
    "tflite/micro_speech_int8.tflite", "onnx/DERIVED_mobilenet_v1_0.25_224_qdq_int8.onnx",
    "tflite/ssd_mobilenet_v1_coco_quant.tflite",
)  # fmt: skip


@pytest.mark.models
@pytest.mark.opencl
@pytest.mark.cpu
@pytest.mark.parametrize("name", MODELS)
def test_real_models_are_equal_to_the_cpu(name: str, models_dir: Path) -> None:
    """No layer but post-processing leaves the device."""
    here = "arm" if host_arch() == "aarch64" else "x86"
    device, cpu = (Predictor(models_dir / name, backend) for backend in ("opencl", here))
    feeds = random_feeds(device.graph)
    found, wanted = device.run(feeds), cpu.run(feeds)
    for output, exact in wanted.items():
        np.testing.assert_array_equal(found[output], exact)
    left = {s.op for s in device.plan().steps if s.backend != "opencl"}
    assert left <= {"TFLite_Detection_PostProcess"}
