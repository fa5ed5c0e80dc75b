"""The commands of docs/edit.md run as they stand there."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
from lite_engine import edit, load, write_onnx
from lite_engine.ir import DType, Graph, Value
from lite_workbench.cli import main

ort = pytest.importorskip("onnxruntime")


def test_every_command_of_the_page(root: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    page = (root / "docs" / "edit.md").read_text()
    commands = [line for line in page.splitlines() if line.startswith("lite edit")]
    shutil.copy(root / "notebooks/models/digits.onnx", tmp_path)
    monkeypatch.chdir(tmp_path)
    norm = edit.extract(load("digits.onnx"), ["/b3/dw/Conv"], ["/b3/Relu"])
    write_onnx(norm, "norm.onnx")
    _models()
    assert len(commands) >= 11
    for command in commands:
        assert main(shlex.split(command)[1:]) == 0, command
        out = re.search(r"-o (\S+)", command)[1]
        assert ort.InferenceSession(out).get_outputs()
    for command in (line for line in page.splitlines() if line.startswith("lite diff")):
        assert main(shlex.split(command)[1:]) == 1, command
    assert "- /Softmax (Softmax)" in capsys.readouterr().out
    image = np.random.default_rng(0).random((1, 1, 32, 32), np.float32)

    def run(name: str, x: np.ndarray) -> np.ndarray:
        session = ort.InferenceSession(name)
        return session.run(None, {session.get_inputs()[0].name: x})[0]

    whole = run("digits.onnx", image)
    np.testing.assert_allclose(run("same.onnx", image), whole, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(run("pixels.onnx", image * 255), whole, rtol=1e-4, atol=1e-6)
    assert run("label.onnx", image) == whole.argmax(1)
    assert [n.op for n in load("clipped.onnx").nodes].count("Clip") == (
        [n.op for n in load("digits.onnx").nodes].count("Relu")
    )
    scores = np.exp(run("scores.onnx", image))
    np.testing.assert_allclose(scores / scores.sum(), whole, rtol=1e-4)
    np.testing.assert_allclose(
        run("numbers_in.onnx", image - np.float32(0.5)),
        run("pixels_in.onnx", (image * 255).astype(np.float32)),
        rtol=1e-4,
    )
    np.testing.assert_allclose(run("logs.onnx", image), np.log(whole), rtol=1e-4, atol=1e-5)
    eight = run("batch8.onnx", np.repeat(image, 8, 0))
    np.testing.assert_allclose(eight, np.repeat(whole, 8, 0), rtol=1e-4, atol=1e-6)


def _models() -> None:
    """What the page has from elsewhere: x → min(max(x, 0), 6), and layers that normalize pixels."""
    clip = Graph("relu6")
    clip.inputs = [Value("x", DType.F32, ("n", "c", "h", "w"))]
    ends = [clip.constant(np.float32(n)) for n in (0, 6)]
    clip.outputs = [clip.add("Clip", [clip.inputs[0], *ends]).output]
    write_onnx(clip, "relu6.onnx")
    logs = Graph("log_softmax")
    logs.inputs = [Value("x", DType.F32, ("n", "classes"))]
    logs.outputs = [logs.add("LogSoftmax", logs.inputs, {"axis": 0}).output]
    write_onnx(logs, "log_softmax.onnx")
    graph = load("digits.onnx")
    first, image = graph.nodes[0], graph.inputs[0]
    x = graph.add("Div", [image, graph.constant(np.float32(255))], before=first).output
    x = graph.add("Sub", [x, graph.constant(np.float32(0.5))], before=first).output
    first.set_input(0, x)
    write_onnx(graph, "pixels_in.onnx")


def test_a_refusal_writes_nothing(root: Path, tmp_path: Path, capsys) -> None:
    graph = load(root / "notebooks/models/digits.onnx")
    flat = graph.add("Reshape", [graph.outputs[0], graph.constant([10, 1])], name="flat")
    graph.outputs = [flat.output]
    source, out = write_onnx(graph, tmp_path / "m.onnx"), tmp_path / "o.onnx"
    assert main(["edit", str(source), "-o", str(out), "--batch", "2"]) == 1
    said = capsys.readouterr().out
    assert "flat (Reshape) does not accept this" in said and "nothing was written" in said
    assert not out.exists()
