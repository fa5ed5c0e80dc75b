"""Every network of the zoo gives onnxruntime's outputs on x86 or this machine's CPU, on emulated
ARM and on the NumPy reference."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine.runtime import host_target

zoo = pytest.importorskip("benchmarks.zoo", reason="the zoo is in the source tree only")

BACKENDS = [
    pytest.param(host_target(), marks=pytest.mark.cpu, id="cpu"),
    pytest.param("arm", marks=pytest.mark.arm),
    "reference",
]


@lru_cache(1)
def case(name: str):
    """The network as a file's bytes, its inputs and onnxruntime's outputs."""
    ort = pytest.importorskip("onnxruntime")
    data = zoo.build(name).SerializeToString()
    session = ort.InferenceSession(data, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(0)
    feeds = {
        i.name: rng.standard_normal(i.shape).astype(np.float32)
        if i.type == "tensor(float)"
        else rng.integers(0, 100, i.shape)
        for i in session.get_inputs()
    }
    names = [o.name for o in session.get_outputs()]
    return data, feeds, dict(zip(names, session.run(names, feeds), strict=True))


@pytest.mark.hours
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", zoo.NAMES)
def test_agrees_with_onnxruntime(name: str, backend: str, tmp_path) -> None:
    data, feeds, wanted = case(name)
    path = tmp_path / f"{name}.onnx"
    path.write_bytes(data)
    made = Predictor(optimize(path), backend).run(feeds)
    for output, y in wanted.items():
        error = np.linalg.norm(made[output] - y) / np.linalg.norm(y)
        print(f"{name} {backend} {output}: {error:.1e}")
        assert error <= 1e-4, output
