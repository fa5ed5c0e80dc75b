"""Networks of the zoo, imported and run on the references, agree with onnxruntime.

`hours` runs all of them."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.importers import onnx as importer
from lite_engine.ops import infer_types

from tests.importers.golden_runs import run_graph

zoo = pytest.importorskip("benchmarks.zoo", reason="the zoo is in the source tree only")
ort = pytest.importorskip("onnxruntime", reason="pip install onnxruntime")
_QUICK = ("shufflenet_v2", "mobilenet_v3_small", "text_encoder", "ocr_recogniser", "squeezenet")


@pytest.mark.parametrize(
    "name",
    [n if n in _QUICK else pytest.param(n, marks=pytest.mark.hours) for n in zoo.NAMES],
)
def test_zoo(name: str) -> None:
    model = zoo.build(name).SerializeToString()
    graph = importer.read_bytes(model)
    infer_types(graph, strict=True)
    rng = np.random.default_rng(0)
    feeds = {}
    for value in graph.inputs:
        shape = [d if isinstance(d, int) else 1 for d in value.shape]
        if value.dtype.is_float:
            feeds[value.name] = rng.standard_normal(shape).astype(value.dtype.np)
        else:
            feeds[value.name] = rng.integers(0, 20, shape).astype(value.dtype.np)
    outputs = run_graph(graph, feeds)
    session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
    for (key, got), wanted in zip(outputs.items(), session.run(None, feeds), strict=True):
        assert got.shape == wanted.shape, key
        error = np.linalg.norm((got - wanted).ravel()) / np.linalg.norm(wanted.ravel())
        assert error <= 1e-4, f"{key}: relative L2 error {error:.2e}"
    for value in graph.outputs:
        assert value.type.is_static or any(not isinstance(d, int) for d in graph.inputs[0].shape)
