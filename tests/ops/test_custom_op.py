"""Operators of users: a NumPy function imports, plans, runs, profiles and compares."""

from __future__ import annotations

import subprocess
import sys

import lite_engine
import numpy as np
import onnx
import pytest
from lite_engine import LiteError, Predictor, optimize
from lite_engine.compare import Side, compare
from lite_engine.errors import UsageError
from lite_engine.ops import Cost
from lite_engine.profile import profile
from onnx import TensorProto, helper

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(2, 6)


@pytest.fixture(scope="module", autouse=True)
def operators():
    @lite_engine.custom_op("com.acme::Swirl")
    def swirl(x, scale=None, *, strength=1.0):
        y = x * np.cos(strength * x)
        return (y if scale is None else y * scale).astype(x.dtype)

    @lite_engine.custom_op("com.acme::Halves", outputs="low high")
    def halves(x):
        return np.split(x, 2, axis=-1)

    @halves.infer
    def _(x):
        return [x.with_shape((*x.dims[:-1], x.dims[-1] // 2))] * 2

    @halves.cost
    def _(x):
        return Cost(flops=7)


@pytest.fixture
def model(tmp_path):
    nodes = [
        helper.make_node("Swirl", ["x"], ["s"], name="swirl", domain="com.acme", strength=2.0),
        helper.make_node("Halves", ["s"], ["low", "high"], name="halves", domain="com.acme"),
        helper.make_node("Sub", ["low", "high"], ["y"], name="difference"),
    ]
    ports = [
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape)]
        for n, shape in (("x", [2, 6]), ("y", [2, 3]))
    ]
    graph = helper.make_graph(nodes, "custom", *ports)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.acme", 1)]
    path = tmp_path / "custom.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets), path)
    return path


def _expected():
    s = X * np.cos(2 * X)
    return s[:, :3] - s[:, 3:]


@pytest.mark.cpu
def test_it_imports_plans_runs_profiles_and_compares(model):
    predictor = Predictor(model, threads=1)
    np.testing.assert_allclose(predictor.run(x=X)["y"], _expected(), rtol=1e-6)
    steps = {s.name: s for s in predictor.plan().steps}
    assert steps["swirl"].backend == steps["halves"].backend == "reference"
    assert steps["halves"].flops == 7 and steps["difference"].backend == "cpu"
    rows = {row.name: row for row in profile(predictor, {"x": X}, runs=3).layers}
    assert rows["swirl"].op == "com.acme::Swirl"
    wrong = Predictor(model, threads=1, faults={"swirl": "drop_last_column"})
    result = compare(Side(Predictor(model, "reference")), Side(wrong, "wrong"), {"x": X})
    assert result.finding.layer == "swirl"


def test_a_file_stores_its_name_and_no_code(model, tmp_path):
    path = optimize(model, targets="x86").save(tmp_path / "custom.lite")
    np.testing.assert_allclose(Predictor(path, "reference").run(x=X)["y"], _expected(), rtol=1e-6)
    code = f"import lite_engine as e\ne.Predictor({str(path)!r}, 'reference').plan()"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{code}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "operator com.acme::Swirl is not known; define it with lite_engine.custom_op" in (
        done.stderr
    )


def test_wrong_names_attributes_and_inputs_are_refused(model):
    for name in ("Relu", "Swirl", "::Swirl"):
        with pytest.raises(UsageError, match="cannot be the name of a custom operator"):
            lite_engine.custom_op(name)
    loaded = onnx.load(model)
    loaded.graph.node[0].attribute[0].name = "weakness"
    onnx.save(loaded, model)
    with pytest.raises(LiteError, match=r"com\.acme::Swirl has no attribute 'weakness'"):
        Predictor(model, "reference").run(x=X)
    loaded.graph.node[0].attribute[0].name = "strength"
    loaded.graph.node[0].input.extend(["x", "x"])
    onnx.save(loaded, model)
    with pytest.raises(LiteError, match="takes 2 inputs, got 3"):
        Predictor(model, "reference").run(x=X)


def test_it_can_be_defined_again():
    for factor in (2, 3):

        @lite_engine.custom_op("com.acme::Times")
        def times(x, factor=factor):
            return x * factor

        assert times.inputs == ("x", "factor?")
