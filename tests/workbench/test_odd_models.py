"""The walk, and the Python calls, on models and arguments that a person hardly means."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ipywidgets", reason="pip install 'lite-workbench[lab]'")

import lite_workbench as lw
import numpy as np
import onnx
from lite_engine import Predictor, load
from lite_engine.errors import LiteError, ShapeError, UsageError
from lite_workbench.steps import STEPS, step_class
from onnx import TensorProto, helper, numpy_helper

pytestmark = pytest.mark.cpu


def tiny(path: Path, nodes: list, inputs: dict, output: str, **weights: Any) -> Path:
    """An ONNX file; inputs are name → shape of float32."""
    ports = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()]
    end = helper.make_tensor_value_info(output, TensorProto.FLOAT, None)
    constants = [numpy_helper.from_array(np.float32(v), n) for n, v in weights.items()]
    graph = helper.make_graph(nodes, "g", ports, [end], constants)
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


def relu(source: str = "x") -> list:
    return [helper.make_node("Relu", [source], ["y"], name="relu")]


ODD = {
    "no layer": ([], {"x": [1, 3]}, "x", {}),
    "no input": (relu("k"), {}, "y", {"k": [-1, 0, 1]}),
    "nothing in it": (relu(), {"x": [0, 3]}, "y", {}),
    "a scalar": (relu(), {"x": []}, "y", {}),
    "any shape": (relu(), {"x": None}, "y", {}),
    "an operator that nothing has": (
        [helper.make_node("Foo", ["x"], ["y"])], {"x": [1, 3]}, "y", {},
    ),
    "such an operator on constants": (
        [helper.make_node("Foo", ["k"], ["f"]), helper.make_node("Add", ["x", "f"], ["y"])],
        {"x": [1, 3]}, "y", {"k": [-1, 0, 1]},
    ),
    "a layer of two outputs": (
        [helper.make_node("Split", ["x"], ["a", "b"], name="split", axis=1),
         helper.make_node("Exp", ["a"], ["c"]), helper.make_node("Relu", ["b"], ["d"]),
         helper.make_node("Mul", ["c", "d"], ["y"])], {"x": [1, 4]}, "y", {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", ODD)
def test_every_step_opens_and_tells_only_errors_of_ours(kind: str, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    nodes, inputs, output, weights = ODD[kind]
    bench = lw.Workbench(tiny(tmp_path / "odd.onnx", nodes, inputs, output, **weights))
    for name in STEPS:
        step = bench.step(name)
        if name == "Run":
            step.guard(step._run)
        if bench.session.job is not None:
            with contextlib.suppress(LiteError):  # any other error is a defect, and raised
                bench.session.job.wait(30)
        for word in ("Error**", "StopIteration", "Exception"):
            assert word not in step.notice.what, f"{name}: {step.notice.what}"


def test_a_failing_step_says_why(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    session = lw.open(tiny(tmp_path / "odd.onnx", *ODD["an operator that nothing has"][:3]))
    for name in ("Profile", "Deploy"):
        step = step_class(name)(session)
        if session.job is not None:
            with contextlib.suppress(LiteError):
                session.job.wait(30)
        assert "no target supports Foo" in step.notice.what and step.notice.layout.display is None


def test_wrong_calls(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tiny(tmp_path / "m.onnx", relu(), {"x": ["N", 3, "H", "W"]}, "y")
    predictor = Predictor(path)
    x = np.zeros((1, 3, 2, 2), np.float32)
    for wrong in ([x], x):
        with pytest.raises(UsageError, match=r"by name, like run\(\{'x': array\}\)"):
            predictor.run(wrong)
    for threads in ("2", 2.5, 0):
        with pytest.raises(UsageError, match="threads must be between 1 and 256"):
            Predictor(path, threads=threads)
    with pytest.raises(UsageError, match="precision 'half' is not one of fp32, fp16"):
        Predictor(path, precision="half")
    for shape in ((1, 3, -1, 5), "1x3x4x4"):
        with pytest.raises(ShapeError, match="is not a valid shape"):
            load(path, shapes={"x": shape})
    session = lw.open(path)
    with pytest.raises(ShapeError, match=r"--shape x:1x3x224x224 or shapes=\{'x': \(1, 3, 224"):
        session.run()
    session.run({"x": x})
    with pytest.raises(UsageError, match="runs must be a whole number of 1 or more, got 0"):
        session.profile("x86", runs=0)
    for call in (
        lambda: session.values("x86", "no"),
        lambda: session.plant_fault("no", "forget_bias"),
    ):
        with pytest.raises(UsageError, match="there is no layer 'no'"):
            call()
    with pytest.raises(UsageError, match="'Foo' is not a step; steps: Model"):
        lw.Workbench(session, step="Foo")
