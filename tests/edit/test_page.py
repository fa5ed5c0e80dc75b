"""The commands of docs/edit.md run as they stand there."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
from lite_engine import edit, load, write_onnx
from lite_workbench.cli import main

ort = pytest.importorskip("onnxruntime")


def test_every_command_of_the_page(root: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    page = (root / "docs" / "edit.md").read_text()
    commands = [line for line in page.splitlines() if line.startswith("lite edit")]
    shutil.copy(root / "notebooks/models/digits.onnx", tmp_path)
    monkeypatch.chdir(tmp_path)
    norm = edit.extract(load("digits.onnx"), ["/b3/dw/Conv"], ["/b3/Relu"])
    write_onnx(norm, "norm.onnx")
    assert len(commands) >= 8
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
    eight = run("batch8.onnx", np.repeat(image, 8, 0))
    np.testing.assert_allclose(eight, np.repeat(whole, 8, 0), rtol=1e-4, atol=1e-6)


def test_a_refusal_writes_nothing(root: Path, tmp_path: Path, capsys) -> None:
    graph = load(root / "notebooks/models/digits.onnx")
    flat = graph.add("Reshape", [graph.outputs[0], graph.constant([10, 1])], name="flat")
    graph.outputs = [flat.output]
    source, out = write_onnx(graph, tmp_path / "m.onnx"), tmp_path / "o.onnx"
    assert main(["edit", str(source), "-o", str(out), "--batch", "2"]) == 1
    said = capsys.readouterr().out
    assert "flat (Reshape) refuses" in said and "nothing was written" in said
    assert not out.exists()
