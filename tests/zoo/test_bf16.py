"""Precision bf16 on x86: close to float32 on whole networks, and said so in the plan."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from lite_engine import Predictor, optimize
from lite_engine.runtime import host_target

zoo = pytest.importorskip("benchmarks.zoo", reason="the zoo is in the source tree only")

pytestmark = pytest.mark.cpu


@pytest.mark.parametrize("name", ["mobilenet_v3_small", "squeezenet"])
def test_outputs_are_close(name, tmp_path):
    path = tmp_path / f"{name}.onnx"
    onnx.save(zoo.build(name), path)
    model, feeds = optimize(path), {}
    rng = np.random.default_rng(0)
    for value in model.graph.inputs:
        feeds[value.name] = rng.standard_normal(value.shape).astype(np.float32)
    outputs = []
    for precision in ("fp32", "bf16"):
        predictor = Predictor(model, host_target(), precision=precision)
        outputs.append(next(iter(predictor.run(feeds).values())).astype(np.float64))
    exact, short = outputs
    assert np.linalg.norm(short - exact) <= 1e-2 * np.linalg.norm(exact)
