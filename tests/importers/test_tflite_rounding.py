"""Operators on bytes give the very integers of LiteRT's default kernels, on every backend."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.importers import load
from lite_engine.passes import optimize_graph
from lite_engine.plan import make_plan
from lite_engine.runtime.execute import Execution
from lite_engine.testing import places

from tests.importers.golden_runs import run_graph
from tests.importers.tflite_rounding import CASES, litert, recorded

WANTED = recorded()
PLACES = {p.name: p for p in places()}
#: What OpenCL leaves to the CPU, beside activations of 16 bits.
ON_CPU = ("RESIZE_BILINEAR", "PRELU", "SQUARED_DIFFERENCE", "BATCH_MATMUL", "MEAN")


def _graph(tmp_path, name: str):
    content, arrays = CASES[name]()
    (tmp_path / "model.tflite").write_bytes(content)
    return optimize_graph(load(tmp_path / "model.tflite")), arrays


@pytest.mark.parametrize("name", CASES)
def test_reference(tmp_path, name):
    graph, arrays = _graph(tmp_path, name)
    (found,) = run_graph(graph, {v.name: x for v, x in zip(graph.inputs, arrays)}).values()
    np.testing.assert_array_equal(found.ravel().view(np.uint8), WANTED[name])


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", CASES)
def test_backends(tmp_path, name, place):
    graph, arrays = _graph(tmp_path, name)
    where = PLACES[place]
    plan = make_plan(graph, where.backend)
    used = {s.backend for s in plan.steps}
    left = name.startswith(ON_CPU) or name.endswith("int16")
    assert used == {where.backend} or (used <= {"cpu", "opencl"} and left)
    (found,) = Execution(plan, threads=2, instead=where.cpu).run(arrays)
    np.testing.assert_array_equal(found.ravel().view(np.uint8), WANTED[name])


def test_the_recordings_are_of_litert():
    pytest.importorskip("ai_edge_litert", reason="pip install ai-edge-litert")
    for name, answer in litert():
        np.testing.assert_array_equal(answer, WANTED[name], name)


def test_ties_tell_the_rules_apart(tmp_path):
    """The recordings hold numbers that ONNX's rule gives otherwise."""
    differing = []
    for name in CASES:
        content, arrays = CASES[name]()
        (tmp_path / "model.tflite").write_bytes(content)
        graph = load(tmp_path / "model.tflite")
        for node in graph.nodes:
            node.attrs.pop("rounding", None)
        feeds = {v.name: x for v, x in zip(graph.inputs, arrays)}
        (found,) = run_graph(optimize_graph(graph), feeds).values()
        if (found.ravel().view(np.uint8) != WANTED[name]).any():
            differing.append(name.split()[0])
    assert {name.split()[0] for name in CASES} == set(differing)
