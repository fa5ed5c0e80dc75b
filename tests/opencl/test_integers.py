"""Integers on OpenCL: exactly the reference's, whole models included."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lite_engine import Predictor
from lite_engine.backends.opencl.cases.integers import integers
from lite_engine.backends.opencl.integer_elementwise import thresholds
from lite_engine.edit import extract_layers
from lite_engine.ir import DType
from lite_engine.model_file import Model, optimize, read_model
from lite_engine.quantize import Options, quantize
from lite_engine.runtime import host_target
from lite_engine.runtime.inputs import random_feeds
from lite_workbench import shipped
from lite_workbench.quantizing import FastRun, calibration, float_graph, model_from

from tests.opencl.tiny import check
from tests.small_models import Builder, classifier

pytestmark = pytest.mark.usefixtures("unoptimized")


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
    path = in_integers(model, samples).save(tmp_path / "one.lite")
    graph = read_model(path).graph
    names = [v.name for n in graph.nodes for v in n.outputs if v.dtype in (DType.I8, DType.U8)]
    weights = [v for v in graph.constants() if v.dtype is DType.I8]
    assert len(names) > 5 and weights
    runs = [Predictor(path, b).run(samples[0], taps=names) for b in ("x86", "arm", "opencl")]
    for name in names:
        for other in runs[1:]:
            np.testing.assert_array_equal(other[name], runs[0][name], name)


@pytest.mark.opencl
@pytest.mark.cpu
def test_integers_between_floats_have_the_cpus_bits_of_its_numbers() -> None:
    """An LSTM stands between two regions in integers. Each backend sums its floats in an order of
    its own, so that a number at the edge of a step may be rounded to the other side of it
    (docs/opencl.md); what is in integers has the CPU's bits where it is given the CPU's floats."""
    here = host_target()
    model = recogniser()
    samples = [random_feeds(model.graph, seed=seed) for seed in range(8)]
    graph = in_integers(model, samples).graph
    layers = [n.name for n in graph.nodes if n.output.dtype in (DType.I8, DType.U8)]
    inner = extract_layers(graph, layers)
    given = [v.name for v in inner.inputs]
    wanted_of = [v.name for v in inner.outputs]
    assert "LSTM" in {n.op for n in graph.nodes} and len(given) == len(wanted_of) == 2
    device = Predictor(Model(inner), "opencl")
    assert {s.backend for s in device.plan().steps} == {"opencl"}
    cpu = Predictor(Model(graph), here)
    for sample in samples:
        numbers = {**sample, **cpu.run(sample, taps=[*given, *wanted_of])}
        found = device.run({name: numbers[name] for name in given})
        for name in wanted_of:
            np.testing.assert_array_equal(found[name], numbers[name], name)


def in_integers(model: Model, samples: Any) -> Model:
    """Quantized in the quickest way, whatever it costs in accuracy."""
    options = Options(method="minmax", rounding="nearest", threshold_db=-100)
    made = quantize(model.graph, calibration(float_graph(model), samples), options, run=FastRun())
    return model_from(made.finished().graph, model)


def recogniser() -> Model:
    """A convolution, an LSTM over its columns, a class for each."""
    b = Builder((1, 3, 8, 24), "recogniser")
    y = b.conv(b.x, 3, 16, 3, name="stem", strides=[2, 2], activation="Relu")
    y = b.conv(y, 16, 12, 3, name="wide", activation="Relu")
    y = b.add("AveragePool", y, kernel_shape=[4, 1])
    y = b.add("Transpose", b.add("Squeeze", y, b.ints(2)), perm=[2, 0, 1])
    gates = [b.weights(2, 4 * 10, n) for n in (12, 10)]
    y = b.add("LSTM", y, *gates, direction="bidirectional", hidden_size=10)
    y = b.add("Reshape", b.add("Transpose", y, perm=[0, 2, 1, 3]), b.ints(-1, 20))
    return optimize(b.done(b.add("Gemm", y, b.weights(20, 30), b.weights(30), name="classes")))


MODELS = (
    "tflite/mobilenet_v1_0.25_224_quant.tflite", "tflite/vww_96_int8.tflite",
    "tflite/micro_speech_int8.tflite", "onnx/DERIVED_mobilenet_v1_0.25_224_qdq_int8.onnx",
    "tflite/ssd_mobilenet_v1_coco_quant.tflite",
)  # fmt: skip


#: Part of the multiply-adds that must be on the device.
LEAST_SHARE = 0.95


def equal_to_the_cpu(model: Path | Model, feeds: dict[str, np.ndarray] | None = None) -> Predictor:
    """The device's predictor, whose 8-bit values are the CPU's."""
    device, cpu = (Predictor(model, backend) for backend in ("opencl", host_target()))
    nodes = device.graph.nodes
    names = [v.name for n in nodes for v in n.outputs if v.dtype in (DType.I8, DType.U8)]
    given = feeds or random_feeds(device.graph)
    found, wanted = (p.run(given, taps=names) for p in (device, cpu))
    assert names
    for name in names:
        np.testing.assert_array_equal(found[name], wanted[name], name)
    for name in device.output_names:
        np.testing.assert_allclose(found[name], wanted[name], rtol=1e-5, atol=1e-6)
    steps = device.plan().steps
    own = sum(s.macs for s in steps if s.backend == "opencl")
    assert own >= LEAST_SHARE * sum(s.macs for s in steps) > 0
    return device


@pytest.mark.models
@pytest.mark.opencl
@pytest.mark.cpu
@pytest.mark.parametrize("name", MODELS)
def test_real_models_are_equal_to_the_cpu(name: str, models_dir: Path) -> None:
    """No layer but post-processing leaves the device."""
    device = equal_to_the_cpu(models_dir / name)
    left = {s.op for s in device.plan().steps if s.backend != "opencl"}
    assert left <= {"TFLite_Detection_PostProcess"}


@pytest.mark.opencl
@pytest.mark.cpu
@pytest.mark.parametrize("name", ["ocr", "digits"])
def test_our_own_models_are_equal_to_the_cpu(name: str) -> None:
    """Softmax at their end is in float."""
    images = np.load(shipped(f"{name}_held_back.npz"))["images"][:4]
    device = equal_to_the_cpu(in_integers(optimize(shipped(f"{name}.onnx")), images))
    assert {s.backend for s in device.plan().steps} == {"opencl"}
