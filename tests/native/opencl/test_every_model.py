"""Every network of the zoo and every real model: the runner without Python gives Python's bits on
this machine's OpenCL device, in fp32 and fp16, and in integers where the file has them."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest
from lite_engine import Predictor, load, optimize
from lite_engine.ir import Graph
from lite_engine.runtime.inputs import random_feeds

from benchmarks import zoo
from tests.importers.golden_runs import Golden
from tests.native.opencl.running import run

pytestmark = [pytest.mark.opencl, pytest.mark.cpu, pytest.mark.hours]
MODELS = Path(os.environ.get("LITE_TEST_MODELS", ""))


def goldens() -> dict[str, str]:
    """Real model → its first recorded run, which has the shape of its input."""
    if not MODELS.name:
        return {}
    folder = MODELS / "goldens"
    names = sorted(str(p.relative_to(folder)) for p in folder.rglob("*__*.npz"))
    return {name.partition("__")[0]: name for name in reversed(names)}


def check(graph: Graph, precision: str, folder: Path) -> None:
    model = optimize(graph, targets=["opencl"], precision={"opencl": precision})
    steps = Predictor(model, "opencl").plan().steps
    if not any(s.backend == "opencl" and s.op != "Copy" for s in steps):
        pytest.skip("no layer of it runs on OpenCL")
    path = model.save(folder / "m.lite")
    feeds = random_feeds(model.graph)
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


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("name", zoo.NAMES)
def test_zoo(name: str, precision: str, tmp_path: Path) -> None:
    source = tmp_path / "network.onnx"
    source.write_bytes(zoo.build(name).SerializeToString())
    check(load(source), precision, tmp_path)


@pytest.mark.models
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("name", goldens())
def test_real(name: str, precision: str, tmp_path: Path) -> None:
    golden = Golden(MODELS, MODELS / "goldens" / goldens()[name])
    path = MODELS / golden.meta["model"]
    graph = load(path)
    (value,) = graph.inputs
    if ".wav" not in goldens()[name] and value.shape != (shape := golden.feed().shape):
        graph = load(path, shapes={value.name: shape})
    check(graph, precision, tmp_path)
