"""Names that a subgraph and the graph around it both have: onnxruntime reads the inner value inside
and the outer one outside. So do the importer, a .lite file and the written ONNX."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from lite_engine import Predictor, load, write_onnx
from lite_engine.model_file import Model

onnx = pytest.importorskip("onnx", reason="pip install onnx")
ort = pytest.importorskip("onnxruntime", reason="pip install onnxruntime")

from onnx import TensorProto, helper  # noqa: E402

F32, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
X = np.array([0.5, -1, 2, -0.25], np.float32)


def info(name: str, kind: int = F32, shape: tuple[int | None, ...] = (4,)):
    return helper.make_tensor_value_info(name, kind, shape)


def loop():
    """The body's y and w are named like the loop's outputs, its z and v like values behind it."""
    nodes = [
        helper.make_node("Add", ["v", "x"], ["y"]),
        helper.make_node("Identity", ["c"], ["z"]),
        helper.make_node("Exp", ["y"], ["w"]),
    ]
    given = [info("i", I64, ()), info("c", BOOL, ()), info("v")]
    body = helper.make_graph(nodes, "b", given, [info("z", BOOL, ()), info("y"), info("w")])
    nodes = [
        helper.make_node("Loop", ["m", "", "x"], ["y", "w"], body=body),
        helper.make_node("Neg", ["y"], ["z"]),
        helper.make_node("Exp", ["z"], ["v"]),
    ]
    ends = [info("z"), info("w", shape=(None, 4)), info("v")]
    return helper.make_graph(nodes, "g", [info("x"), info("m", I64, ())], ends), {"m": np.array(3)}


def branches(chosen: bool):
    """Both branches call their result as If does, and one has a constant of an outer one's name."""
    k = onnx.numpy_helper.from_array
    yes = helper.make_graph([helper.make_node("Mul", ["x", "k"], ["r"])], "yes", [], [info("r")],
                            [k(np.float32(3), "k")])  # fmt: skip
    no = helper.make_graph([helper.make_node("Exp", ["x"], ["r"])], "no", [], [info("r")])
    nodes = [
        helper.make_node("Add", ["x", "k"], ["sum"]),
        helper.make_node("If", ["c"], ["r"], then_branch=yes, else_branch=no),
    ]
    made = helper.make_graph(nodes, "g", [info("x"), info("c", BOOL, ())],
                             [info("sum"), info("r")], [k(np.float32(5), "k")])  # fmt: skip
    return made, {"c": np.array(chosen)}


@pytest.mark.parametrize("made", [loop(), branches(True), branches(False)],
                         ids=["loop", "yes", "no"])  # fmt: skip
def test_names_met_twice(made, tmp_path: Path) -> None:
    graph, more = made
    opsets = [helper.make_opsetid("", 17)]
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)
    feeds = {"x": X, **more}
    session = ort.InferenceSession(str(path))
    names = [v.name for v in session.get_outputs()]
    wanted = dict(zip(names, session.run(None, feeds), strict=True))
    read = load(path)
    Model(read).save(tmp_path / "model.lite")
    write_onnx(read, tmp_path / "again.onnx")
    again = ort.InferenceSession(str(tmp_path / "again.onnx")).run(names, feeds)
    all_made = [Predictor(f).run(feeds) for f in (path, tmp_path / "model.lite")]
    for got in (*all_made, dict(zip(names, again, strict=True))):
        for name in names:
            np.testing.assert_allclose(got[name], wanted[name], rtol=1e-5)
