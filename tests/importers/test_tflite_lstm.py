"""LSTM layers of TFLite: every variant gives LiteRT's numbers, and nothing of it needs NumPy."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from lite_engine.errors import ModelFormatError, ShapeError, UnsupportedOperatorError
from lite_engine.importers import load
from lite_engine.passes import optimize_graph
from lite_engine.plan import make_plan
from lite_engine.runtime.execute import Execution
from lite_engine.testing import places

from tests.importers.golden_runs import run_graph
from tests.importers.litert_answers import litert
from tests.importers.tflite_lstm import CASES, forward, recorded
from tests.importers.tiny_tflite import TinyModel

WANTED = recorded()
PLACES = {p.name: p for p in places() if p.name in ("avx2", "emulated ARM", "opencl")}


def _graph(tmp_path, content: bytes, name: str = ""):
    """`name`: of the case, which says whether activations become bytes."""
    (tmp_path / "model.tflite").write_bytes(content)
    activations = "dynamic" if name.startswith("dynamic") else "float"
    return optimize_graph(load(tmp_path / "model.tflite", activations=activations))


def _flat(outputs: Iterable[np.ndarray]) -> np.ndarray:
    return np.concatenate([y.ravel() for y in outputs])


@pytest.mark.parametrize("name", CASES)
def test_reference(tmp_path, name):
    content, x = CASES[name]()
    found = run_graph(_graph(tmp_path, content, name), {"x": x}).values()
    np.testing.assert_allclose(_flat(found), WANTED[name], atol=2e-6)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "name", ["coupled gates", "projection", "everything", "bidirectional", "dynamic, everything",
             "dynamic, symmetric ranges, everything"],
)  # fmt: skip
def test_backends(tmp_path, name, place):
    content, x = CASES[name]()
    where = PLACES[place]
    plan = make_plan(_graph(tmp_path, content, name), where.backend)
    assert "reference" not in {s.backend for s in plan.steps}
    found = Execution(plan, threads=2, instead=where.cpu).run([x])
    np.testing.assert_allclose(_flat(found), WANTED[name], atol=1e-5)


def test_the_recordings_are_of_litert():
    pytest.importorskip("ai_edge_litert", reason="pip install ai-edge-litert")
    for name, make in CASES.items():
        np.testing.assert_allclose(litert(make), WANTED[name], atol=1e-6, err_msg=name)


def _of_bytes(graph) -> int:
    return sum(n.op == "DynamicQuantizeGemm" for n in graph.nodes)


def test_bytes_are_chosen_and_matter(tmp_path):
    content, x = CASES["dynamic"]()
    graph = _graph(tmp_path, content)
    assert not _of_bytes(graph)
    (y,) = run_graph(graph, {"x": x}).values()
    assert np.abs(y.ravel() - WANTED["dynamic"]).max() > 1e-3
    assert _of_bytes(_graph(tmp_path, content, "dynamic"))


def test_symmetric_ranges_are_another_rule(tmp_path):
    asymmetric, symmetric = WANTED["dynamic"], WANTED["dynamic, symmetric ranges"]
    assert np.abs(asymmetric - symmetric).max() > 1e-4


def test_an_activation_that_no_cell_has(tmp_path):
    content, _ = forward(activation=5)
    with pytest.raises(UnsupportedOperatorError, match="cell activation 5"):
        _graph(tmp_path, content)


def test_a_series_without_axes(tmp_path, monkeypatch):
    tensor = TinyModel.tensor

    def bare(self, name, dtype, shape, *data, **more):
        return tensor(self, name, dtype, shape[2:] if name == "x" else shape, *data, **more)

    monkeypatch.setattr(TinyModel, "tensor", bare)
    content, _ = forward(in_bytes=True)
    with pytest.raises(ShapeError, match="outside a rank-1 tensor"):
        _graph(tmp_path, content, "dynamic")


@pytest.mark.parametrize("which", ["w2", "w13"])
def test_a_weight_without_axes(tmp_path, monkeypatch, which: str):
    """w2 says how many units there are, w13 is the projection."""
    tensor = TinyModel.tensor

    def bare(self, name, dtype, shape, data=None, **more):
        single = (name, dtype, (), np.float32(1))
        return tensor(self, *(single if name == which else (name, dtype, shape, data)), **more)

    monkeypatch.setattr(TinyModel, "tensor", bare)
    content, _ = forward(projection=True)
    with pytest.raises(ModelFormatError, match=r"a weight of an LSTM of [08] units has"):
        _graph(tmp_path, content)
