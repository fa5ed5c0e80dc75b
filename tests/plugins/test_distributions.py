"""engine/plugins in this environment: a network whole, and with half of its operators refused.

`test_wheels.py` does so with every network of the zoo and the installed packages.
"""

from __future__ import annotations

import importlib

import pytest
from lite_engine import optimize
from lite_engine.backends import register_backend, unregister_backend
from lite_engine.importers.onnx import read_bytes

from benchmarks import zoo

from .zoo_runs import FAULT_IN, TOLERANCE, fault_found, whole_and_halves

pytestmark = pytest.mark.cpu

CLASSES = {
    "onnxruntime": "OnnxRuntimeBackend",
    "openvino": "OpenVinoBackend",
    "litert": "LiteRtBackend",
}
LIBRARIES = {"litert": "ai_edge_litert"}


@pytest.fixture(params=CLASSES)
def plugin(request):
    name = request.param
    library = LIBRARIES.get(name, name)
    pytest.importorskip(library, reason=f"pip install {library.replace('_', '-')}")
    backend = getattr(importlib.import_module(f"lite_backend_{name}"), CLASSES[name])()
    register_backend(backend)
    yield backend
    unregister_backend(name)


def _model(name):
    return optimize(read_bytes(zoo.build(name).SerializeToString()))


def test_a_network_runs_whole_and_with_half_of_its_operators_refused(plugin):
    made = whole_and_halves(plugin, _model("text_encoder"))
    assert made["error"] < TOLERANCE and not made["failed"]
    assert made["whole"]["layers"] > 9 * made["whole"]["cpu"]
    assert all(h["layers"] and h["cpu"] and h["subgraphs"] > 1 for h in made["halves"])


@pytest.mark.hours
def test_compare_names_a_fault_in_a_subgraph_that_it_runs(plugin):
    planted, found = fault_found(plugin, _model(FAULT_IN[0]))
    assert found == planted
