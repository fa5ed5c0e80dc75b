"""Names of a model that a terminal would obey: no verb prints one raw."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest

pytest.importorskip("onnx", reason="pip install onnx")

import subprocess

import lite_workbench as lw
import numpy as np
from lite_engine._native import runner_path
from lite_engine.runtime import host_target
from lite_workbench.cli import main
from onnx import TensorProto, helper, numpy_helper

pytestmark = pytest.mark.cpu

#: A screen that is cleared, a title (OSC), C1's CSI, text from right to left, a zero, line breaks.
HOSTILE = "\x1b[2J\x1b]0;owned\x07\x9b2J\u202e\0\r\n\u2028=1+1"
#: What a verb may print besides text: line breaks.
_MEANT = {"\n"}
#: Marks that join letters, which several scripts need.
_JOINERS = {"\u200c", "\u200d"}


def model(folder: Path, operator: str = "Relu") -> Path:
    names = {name: f"{name}{HOSTILE}" for name in "xwcy"}
    x, y = (helper.make_tensor_value_info(names[n], TensorProto.FLOAT, [1, 4]) for n in "xy")
    weight = numpy_helper.from_array(np.eye(4, dtype=np.float32), names["w"])
    nodes = [
        helper.make_node("MatMul", [names["x"], names["w"]], [names["c"]], name=f"a{HOSTILE}"),
        helper.make_node(operator, [names["c"]], [names["y"]], name=f"b{HOSTILE}"),
    ]
    graph = helper.make_graph(nodes, f"g{HOSTILE}", [x], [y], [weight])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = folder / "m.onnx"
    path.write_bytes(made.SerializeToString())
    return path


def obeyed(text: str) -> set[str]:
    kinds = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    return {c for c in text if unicodedata.category(c) in kinds} - _MEANT - _JOINERS


def forged(text: str) -> list[str]:
    """Lines that a name has begun."""
    return [line for line in text.splitlines() if line.startswith("\\u2028=1+1")]


@pytest.mark.parametrize("line", [
    "info m.onnx --layers", "info m.lite", "convert m.onnx -o n.lite", "opt m.onnx -o o.lite",
    "run m.onnx", "run m.lite --backend x86", "profile m.onnx --backend reference --runs 1",
    "compare m.onnx --backends reference,x86", "diff m.onnx m.lite", "get m.onnx", "runs list",
    "runs show 1",
])  # fmt: skip
def test_no_verb_prints_them(line: str, tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LITE_CACHE_DIR", str(tmp_path / "cache"))
    model(tmp_path)
    if "m.lite" in line:
        assert main(["convert", "m.onnx", "-o", "m.lite"]) == 0
    if line.startswith("runs"):
        assert main(["profile", "m.onnx", "--backend", "reference", "--runs", "1"]) == 0
    capsys.readouterr()
    main(line.split())
    out, err = capsys.readouterr()
    assert out or err
    assert not obeyed(out + err), (line, obeyed(out + err))
    assert not forged(out + err), line
    assert "Traceback" not in err


def test_the_error_of_an_operator_that_nothing_has(tmp_path: Path, capsys) -> None:
    path = model(tmp_path, f"Foo{HOSTILE}")
    assert main(["convert", str(path), "-o", str(tmp_path / "m.lite")]) != 0
    out, err = capsys.readouterr()
    assert "Foo" in err and not obeyed(out + err) and err.count("\n") == 1


@pytest.mark.parametrize(
    "options", [["--info"], ["--check"], ["--input", "=x.npy"], ["--tap", "?"]]
)
def test_the_runner_prints_none(options: list[str], tmp_path: Path) -> None:
    words = ["-o", str(tmp_path / "m.lite"), "--targets", host_target()]
    assert main(["convert", str(model(tmp_path)), *words]) == 0
    done = subprocess.run(
        [str(runner_path()), str(tmp_path / "m.lite"), *options], capture_output=True, text=True
    )
    assert done.stdout or done.stderr
    assert not obeyed(done.stdout + done.stderr) and not forged(done.stdout + done.stderr)


def test_an_answer_in_a_terminal_is_one_line(tmp_path: Path) -> None:
    profile = lw.open(model(tmp_path)).profile("reference", runs=1)
    profile.model = f"m{HOSTILE}"
    assert not obeyed(repr(profile)) and "\n" not in repr(profile)
