"""Integer LSTMs of TFLite: LiteRT's bytes on every backend, and nothing of it needs NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.errors import ModelFormatError
from lite_engine.importers import load
from lite_engine.passes import optimize_graph
from lite_engine.plan import make_plan
from lite_engine.runtime.execute import Execution
from lite_engine.testing import places

from tests.importers.golden_runs import run_graph
from tests.importers.litert_answers import litert
from tests.importers.tflite_int_lstm import CASES, model, recorded

WANTED = recorded()
PLACES = {p.name: p for p in places()}


def _graph(tmp_path, content: bytes):
    (tmp_path / "model.tflite").write_bytes(content)
    return optimize_graph(load(tmp_path / "model.tflite"))


@pytest.mark.parametrize("name", CASES)
def test_reference(tmp_path, name):
    content, x = CASES[name]()
    (found,) = run_graph(_graph(tmp_path, content), {"x": x}).values()
    np.testing.assert_array_equal(found.ravel(), WANTED[name])


@pytest.mark.parametrize("place", PLACES)
def test_backends(tmp_path, place):
    where = PLACES[place]
    for name, make in CASES.items():
        content, x = make()
        plan = make_plan(_graph(tmp_path, content), where.backend)
        kernels = [s for s in plan.steps if s.op == "QLSTM"]
        # OpenCL leaves the layer to the CPU.
        assert [s.backend for s in kernels] == ["cpu" if place == "opencl" else where.backend]
        (found,) = Execution(plan, threads=2, instead=where.cpu).run([x])
        np.testing.assert_array_equal(found.ravel(), WANTED[name], name)


def test_the_recordings_are_of_litert():
    pytest.importorskip("ai_edge_litert", reason="pip install ai-edge-litert")
    for name, make in CASES.items():
        np.testing.assert_array_equal(litert(make), WANTED[name], name)


def test_a_cell_whose_steps_are_no_power_of_two(tmp_path):
    content, _ = model(cell_bits=8)
    with pytest.raises(ModelFormatError, match=r"a power of two .* got 0\.00390625"):
        _graph(tmp_path, content)
