"""Every network of the zoo and every real model: the runner without Python gives Python's bits on
this machine's OpenCL device, in fp32, fp16 and int8."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from lite_engine import Predictor, load, optimize
from lite_engine.edit import extract
from lite_engine.ir import Graph
from lite_engine.quantize import Options, quantize
from lite_engine.runtime.inputs import random_feeds
from lite_workbench.quantizing import FastRun

from benchmarks import zoo
from tests.native.opencl.running import run
from tests.real_models import REAL, SOUND

pytestmark = [pytest.mark.opencl, pytest.mark.cpu, pytest.mark.hours]
PRECISIONS = ("fp32", "fp16", "int8")
#: The quickest way to integers, whatever it costs in accuracy.
QUICKLY = Options(method="minmax", rounding="nearest", threshold_db=-100)
Feeds = dict[str, np.ndarray]


def check(graph: Graph, precision: str, feeds: Feeds, folder: Path) -> None:
    if precision == "int8":
        graph = optimize(graph, targets=["x86"]).graph
        if any(n.op.startswith("QLinear") for n in graph.nodes):
            pytest.skip("its file has integers: they run with fp32")
        samples = [
            {k: (v * scale).astype(v.dtype) for k, v in feeds.items()} for scale in (1, 0.5, 0.8)
        ]
        graph = quantize(graph, samples, QUICKLY, run=FastRun(), force=True).graph
    floats = {} if precision == "int8" else {"opencl": precision}
    model = optimize(graph, targets=["opencl"], precision=floats)
    steps = Predictor(model, "opencl").plan().steps
    if not any(s.backend == "opencl" and s.op != "Copy" for s in steps):
        pytest.skip("no layer of it runs on OpenCL")
    path = model.save(folder / "m.lite")
    command: list[object] = [path, "--backend", "opencl", "--output", folder / "out"]
    for number, (name, x) in enumerate(feeds.items()):
        np.save(folder / f"{number}.npy", x)
        command += ["--input", f"{name}={folder / f'{number}.npy'}"]
    done = run(*command)
    assert done.returncode == 0 and not done.stderr, done.stderr
    for name, wanted in Predictor(path, "opencl").run(feeds).items():
        found = np.load(folder / "out" / f"{re.sub('[^A-Za-z0-9._-]', '_', name)}.npy")
        off = np.linalg.norm(1.0 * found - wanted) / (np.linalg.norm(1.0 * wanted) + 1e-30)
        assert found.tobytes() == np.ascontiguousarray(wanted).tobytes(), f"{name}: {off:.1e}"


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", zoo.NAMES)
def test_zoo(name: str, precision: str, tmp_path: Path) -> None:
    source = tmp_path / "network.onnx"
    source.write_bytes(zoo.build(name).SerializeToString())
    graph = load(source)
    check(graph, precision, random_feeds(graph), tmp_path)


def after_front_end(path: Path, sound: Path) -> tuple[Graph, Feeds]:
    """Without the decoding of a sound and its features, which pipelines compute on a device: the
    network and the features of `sound`."""
    graph = load(path)
    (value,) = graph.inputs
    feeds = {value.name: np.fromfile(sound, np.uint8)}
    (features,) = [n.outputs[0].name for n in graph.nodes if n.op == "Mfcc"]
    made = Predictor(graph, "reference").run(feeds, taps=[features])[features]
    graph = load(path, shapes={value.name: feeds[value.name].shape})
    return extract(graph, [features]), {features: made}


@pytest.mark.models
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", [*REAL, *SOUND])
def test_real(name: str, precision: str, models_dir: Path, tmp_path: Path) -> None:
    path = models_dir / name
    if name in SOUND:
        graph, feeds = after_front_end(path, models_dir / SOUND[name])
    else:
        graph = load(path)
        if shape := REAL[name]:
            graph = load(path, shapes={graph.inputs[0].name: shape})
        feeds = random_feeds(graph)
    check(graph, precision, feeds, tmp_path)
