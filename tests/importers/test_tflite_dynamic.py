"""activations="dynamic": layers of dynamic-range models give the floats of LiteRT, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.errors import UsageError
from lite_engine.importers import load
from lite_engine.passes import optimize_graph
from lite_engine.plan import make_plan
from lite_engine.runtime.execute import Execution
from lite_engine.runtime.support import model_info
from lite_engine.testing import places

from tests.importers.golden_runs import run_graph
from tests.importers.litert_answers import litert
from tests.importers.tflite_dynamic import CASES, recorded

WANTED = recorded()
PLACES = {p.name: p for p in places()}
#: Where a product and a sum are not one operation.
NOT_FUSED = ("sse2", "wasm", "emulated ARMv7")


def _graph(tmp_path, content: bytes, **options):
    (tmp_path / "model.tflite").write_bytes(content)
    return optimize_graph(load(tmp_path / "model.tflite", **options))


@pytest.mark.parametrize("name", CASES)
def test_reference(tmp_path, name):
    content, x = CASES[name]()
    graph = _graph(tmp_path, content, activations="dynamic")
    (found,) = run_graph(graph, {graph.inputs[0].name: x}).values()
    np.testing.assert_array_equal(found.ravel(), WANTED[name])


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", CASES)
def test_backends(tmp_path, name, place):
    content, x = CASES[name]()
    where = PLACES[place]
    plan = make_plan(_graph(tmp_path, content, activations="dynamic"), where.backend)
    kernels = [s for s in plan.steps if s.op.startswith("DynamicQuantize")]
    # OpenCL leaves these layers to the CPU.
    assert [s.backend for s in kernels] == ["cpu" if place == "opencl" else where.backend]
    (found,) = Execution(plan, threads=2, instead=where.cpu).run([x])
    if place in NOT_FUSED:
        np.testing.assert_allclose(found.ravel(), WANTED[name], rtol=1e-5, atol=1e-5)
    else:
        np.testing.assert_array_equal(found.ravel(), WANTED[name])


@pytest.mark.parametrize("name", ["dense", "convolution", "depthwise"])
def test_floating_point_is_another_answer(tmp_path, name):
    """Which is why the option is there; without it nothing changes."""
    content, x = CASES[name]()
    graph = _graph(tmp_path, content)
    assert not any(n.op.startswith("DynamicQuantize") for n in graph.nodes)
    (found,) = run_graph(graph, {graph.inputs[0].name: x}).values()
    off = np.abs(found.ravel() - WANTED[name]).max() / np.abs(WANTED[name]).max()
    assert 1e-4 < off < 0.05


@pytest.mark.parametrize("value", [0.0, 2.5, -0.125])
def test_inputs_of_one_value(tmp_path, value):
    """A range of nothing, or of one side."""
    for name in ("dense", "convolution", "depthwise"):
        content, x = CASES[name]()
        graph = _graph(tmp_path, content, activations="dynamic")
        x = np.full_like(x, value)
        (wanted,) = run_graph(graph, {graph.inputs[0].name: x}).values()
        assert np.isfinite(wanted).all()
        (found,) = Execution(make_plan(graph, "cpu"), threads=2).run([x])
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


def test_the_recordings_are_of_litert():
    pytest.importorskip("ai_edge_litert", reason="pip install ai-edge-litert")
    for name, make in CASES.items():
        np.testing.assert_array_equal(litert(make), WANTED[name], name)


def test_info_says_how_the_layers_compute(tmp_path):
    content, _ = CASES["dense"]()
    (tmp_path / "model.tflite").write_bytes(content)
    stored = load(tmp_path / "model.tflite")
    hints = model_info(stored, "model.tflite", ("x86",)).hints
    assert any("--activations dynamic" in h for h in hints)
    dynamic = load(tmp_path / "model.tflite", activations="dynamic")
    hints = model_info(dynamic, "model.tflite", ("x86",)).hints
    assert any("as it runs" in h for h in hints)
    assert not any("--activations" in h for h in hints)


def test_wrong_words_are_refused(tmp_path):
    content, _ = CASES["dense"]()
    (tmp_path / "model.tflite").write_bytes(content)
    with pytest.raises(UsageError, match='"float" or "dynamic"'):
        load(tmp_path / "model.tflite", activations="static")
