"""engine/plugins on the zoo: whole networks, and with half of their operators refused."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine.backends import register_backend, unregister_backend
from lite_engine.compare import Side, compare
from lite_engine.importers.onnx import read_bytes
from lite_engine.runtime import host_target

from benchmarks import zoo

pytestmark = pytest.mark.cpu

CLASSES = {
    "onnxruntime": "OnnxRuntimeBackend",
    "openvino": "OpenVinoBackend",
    "litert": "LiteRtBackend",
}
LIBRARIES = {"litert": "ai_edge_litert"}
QUICK = ("text_encoder",)
LONG = [pytest.param(n, marks=pytest.mark.hours) for n in zoo.NAMES if n not in QUICK]


@pytest.fixture(params=CLASSES)
def plugin(request):
    name = request.param
    library = LIBRARIES.get(name, name)
    pytest.importorskip(library, reason=f"pip install {library.replace('_', '-')}")
    backend = getattr(importlib.import_module(f"lite_backend_{name}"), CLASSES[name])()
    register_backend(backend)
    yield backend
    unregister_backend(name)


def _network(name):
    graph = read_bytes(zoo.build(name).SerializeToString())
    rng = np.random.default_rng(0)
    feeds = {
        v.name: rng.random(v.shape, np.float32)
        if v.dtype.is_float
        else rng.integers(0, 9, v.shape).astype(v.dtype.np)
        for v in graph.inputs
    }
    return optimize(graph), feeds


def _close(got, want):
    for name in want:
        np.testing.assert_allclose(got[name], want[name], atol=2e-5 * np.abs(want[name]).max())


@pytest.mark.parametrize("name", [*QUICK, *LONG])
def test_networks_run_whole_and_with_half_of_their_operators_refused(plugin, monkeypatch, name):
    model, feeds = _network(name)
    expected = Predictor(model, host_target(), threads=1).run(feeds)
    whole = Predictor(model, plugin.name, threads=1)
    _close(whole.run(feeds), expected)
    assert whole.shares()[plugin.name].layer_share > 0.9
    ops = sorted({n.op for n in model.graph.nodes})
    supports = plugin.supports
    refused = set(ops[::2])
    monkeypatch.setattr(plugin, "supports", lambda n: "no" if n.op in refused else supports(n))
    # every supported node in a sub-graph, whatever its copies cost
    monkeypatch.setattr(plugin, "border_cost", lambda: (0.0, 0.0, 0.0), raising=False)
    half = Predictor(model, plugin.name, threads=1)
    _close(half.run(feeds), expected)
    shares = half.shares()
    assert shares[plugin.name].layers and shares["cpu"].layers
    assert not half.refused


@pytest.mark.slow
def test_compare_names_a_fault_in_a_subgraph_that_it_runs(plugin, monkeypatch):
    model, feeds = _network("mobilenet_v3_small")
    node = [n for n in model.graph.nodes if n.op == "Conv"][5]
    compile_graph = plugin.compile

    def spoilt(graph, **options):
        for each in graph.nodes:
            if each.name == node.name:
                each.inputs[1].const = -each.inputs[1].const
        result = compile_graph(graph, **options)
        for each in graph.nodes:
            if each.name == node.name:
                each.inputs[1].const = -each.inputs[1].const
        return result

    monkeypatch.setattr(plugin, "compile", spoilt)
    sides = (Side(Predictor(model, b, threads=1)) for b in ("reference", plugin.name))
    assert compare(*sides, feeds).finding.layer == node.name
