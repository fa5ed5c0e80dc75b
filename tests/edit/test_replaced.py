"""Replaced, dropped and renamed values: the file that is written has the outputs' names and says
what onnxruntime computes, with branches, further outputs and names that are met twice."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from lite_engine import Predictor, edit, load, write_onnx
from lite_engine.errors import ShapeError, UsageError
from lite_engine.ir import Graph, from_text, to_text, verify
from lite_engine.model_file import Model
from lite_workbench.cli import main
from onnx import TensorProto, helper

RNG = np.random.default_rng(7)
X = RNG.standard_normal((3, 4)).astype(np.float32)


def info(name: str, shape: list[int | str | None], kind: int = TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def written(path: Path, nodes: list, inputs: list, outputs: list) -> Path:
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return path


def two_outputs(folder: Path) -> Path:
    """b = relu(x), c = tanh(b); both are outputs."""
    nodes = [
        helper.make_node("Relu", ["x"], ["b"], name="relu"),
        helper.make_node("Tanh", ["b"], ["c"], name="tanh"),
    ]
    return written(
        folder / "two.onnx",
        nodes,
        [info("x", ["N", 4])],
        [info("b", ["N", 4]), info("c", ["N", 4])],
    )


def branches(folder: Path) -> Path:
    """y = relu(a·a) or relu(a) + b, where a = −x and b = tanh(a)."""
    yes = helper.make_graph(
        [helper.make_node("Mul", ["a", "a"], ["t"]), helper.make_node("Relu", ["t"], ["t_end"])],
        "yes", [], [info("t_end", [None, 4])],
    )  # fmt: skip
    no = helper.make_graph(
        [helper.make_node("Relu", ["a"], ["e"]), helper.make_node("Add", ["e", "b"], ["e_end"])],
        "no", [], [info("e_end", [None, 4])],
    )  # fmt: skip
    nodes = [
        helper.make_node("Neg", ["x"], ["a"], name="neg"),
        helper.make_node("Tanh", ["a"], ["b"], name="tanh"),
        helper.make_node("If", ["c"], ["y"], name="if", then_branch=yes, else_branch=no),
    ]
    inputs = [info("x", ["N", 4]), info("c", [], TensorProto.BOOL)]
    return written(folder / "if.onnx", nodes, inputs, [info("y", ["N", 4])])


def doubled(folder: Path) -> Path:
    nodes = [helper.make_node("Add", ["p", "p"], ["q"], name="add")]
    return written(folder / "double.onnx", nodes, [info("p", ["M", 4])], [info("q", ["M", 4])])


def in_both(graph: Graph, folder: Path, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What onnxruntime computes of the graph as ONNX, which the engine gives, too, also of a .lite
    file."""
    write_onnx(graph, folder / "out.onnx")
    session = onnxruntime.InferenceSession(str(folder / "out.onnx"))
    names = [v.name for v in session.get_outputs()]
    assert names == [v.name for v in graph.outputs]
    wanted = dict(zip(names, session.run(None, feeds), strict=True))
    Model(graph).save(folder / "out.lite")
    for model in (folder / "out.onnx", folder / "out.lite"):
        got = Predictor(model).run(feeds)
        assert got.keys() == wanted.keys()
        for name, array in wanted.items():
            np.testing.assert_allclose(got[name], array, rtol=1e-5, atol=1e-6)
    return wanted


def test_an_output_behind_another_one_is_dropped(tmp_path: Path) -> None:
    made = in_both(edit.drop(load(two_outputs(tmp_path)), ["tanh"]), tmp_path, {"x": X})
    np.testing.assert_array_equal(made["c"], np.maximum(X, 0))
    np.testing.assert_array_equal(made["b"], np.maximum(X, 0))


def test_an_output_becomes_an_input_of_the_model(tmp_path: Path) -> None:
    graph = edit.drop(load(two_outputs(tmp_path)), ["relu", "tanh"])
    made = in_both(graph, tmp_path, {"x": X})
    np.testing.assert_array_equal(made["b"], X)
    np.testing.assert_array_equal(made["c"], X)


def test_names_are_swapped(tmp_path: Path) -> None:
    graph = edit.rename(load(two_outputs(tmp_path)), {"b": "c", "c": "b"})
    made = in_both(graph, tmp_path, {"x": X})
    np.testing.assert_array_equal(made["c"], np.maximum(X, 0))
    np.testing.assert_allclose(made["b"], np.tanh(np.maximum(X, 0)), rtol=1e-6)
    with pytest.raises(UsageError, match="no value 'z'"):
        edit.rename(load(two_outputs(tmp_path)), {"b": "z", "z": "y"})


@pytest.mark.parametrize("chosen", [True, False])
@pytest.mark.parametrize("name", ["t", "e", "t_end"])
def test_a_name_that_a_branch_has(name: str, chosen: bool, tmp_path: Path) -> None:
    feeds = {"x": X, "c": np.array(chosen)}
    wanted = in_both(load(branches(tmp_path)), tmp_path, feeds)
    made = in_both(edit.rename(load(branches(tmp_path)), {"a": name}), tmp_path, feeds)
    np.testing.assert_array_equal(made["y"], wanted["y"])


def test_a_name_of_a_surrounding_graph_is_written_apart() -> None:
    inner = from_text('graph "in" {\n  input v: f32[2]\n  n: x = Neg(v)\n  output x\n}')
    text = (
        'graph "out" {\n  input x: f32[2]\n  input x.1: f32[2]\n  n: y = Add(x, x.1)\n  output y\n}'
    )
    outer = from_text(text)
    outer.nodes[0].attrs["body"] = inner
    again = from_text(to_text(outer))
    body = again.nodes[0].attrs["body"]
    assert (body.inputs[0].name, body.outputs[0].name) == ("v", "x.2")
    verify(body)


@pytest.mark.parametrize("chosen", [True, False])
def test_a_captured_value_is_replaced(chosen: bool, tmp_path: Path) -> None:
    graph = edit.replace(load(branches(tmp_path)), ["x"], ["a"], load(doubled(tmp_path)))
    made = in_both(graph, tmp_path, {"x": X, "c": np.array(chosen)})
    a = 2 * X
    wanted = np.maximum(a * a, 0) if chosen else np.maximum(a, 0) + np.tanh(a)
    np.testing.assert_allclose(made["y"], wanted, rtol=1e-5)


def test_what_is_no_region_is_refused(tmp_path: Path) -> None:
    graph, by = load(two_outputs(tmp_path)), load(doubled(tmp_path))
    with pytest.raises(UsageError, match="b depends on b"):
        edit.replace(graph, ["b"], ["b"], by)
    with pytest.raises(UsageError, match="no layer computes x: it is an input of the model"):
        edit.replace(graph, ["b"], ["x"], by)


def test_suppression_takes_boxes(tmp_path: Path) -> None:
    with pytest.raises(ShapeError, match="boxes of rank 3"):
        edit.append_nms(load(two_outputs(tmp_path)), "b", "c")


def test_names_with_colons(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, by = tmp_path / "named.onnx", doubled(tmp_path)
    write_onnx(edit.rename(load(two_outputs(tmp_path)), {"x": "x:0", "b": "b:0"}), source)
    out = tmp_path / "edited.onnx"
    call = ["edit", str(source), "-o", str(out), "--json", "-", "--replace"]
    assert main([*call, f"x:0:b:0={by}"]) == 0
    assert json.loads(capsys.readouterr().out)["layers"]["after"] == 2
    session = onnxruntime.InferenceSession(str(out))
    np.testing.assert_array_equal(session.run(["b:0"], {"x:0": X})[0], 2 * X)
    for text in (f"b:0={by}", f"b={by}", f":b={by}"):
        assert main([*call, text]) == 2
    assert "is not of the form --replace INS:OUTS=FILE" in capsys.readouterr().err
