"""`%lite`: the verbs as objects, and what Tab offers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("IPython", reason="pip install 'lite-workbench[lab]'")
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell
from lite_workbench import shipped
from lite_workbench.commands import available

pytestmark = pytest.mark.cpu


@pytest.fixture
def shell() -> Iterator[Any]:
    made = InteractiveShell.instance()
    made.run_line_magic("load_ext", "lite_workbench")
    made.user_ns.update(model=shipped("digits.onnx"), image=shipped("digits.png"))
    made.Completer.use_jedi = False
    yield made
    made.run_line_magic("unload_ext", "lite_workbench")
    InteractiveShell.clear_instance()


def complete(shell: Any, text: str) -> list[str]:
    with provisionalcompleter():
        return [c.text for c in shell.Completer.completions(text, len(text))]


def test_result_is_an_object(shell: Any) -> None:
    shell.run_cell("answer = %lite run {model} --input {image} --backend x86")
    result = shell.user_ns["answer"]
    assert result.top[0][1] == "7" and result.backend == "x86"
    assert "probability" in result._repr_html_() and "7" in repr(result)


def test_cell_runs_several(shell: Any) -> None:
    done = shell.run_cell("%%lite\n# first\ninfo {model}\nrun {model} --backend reference")
    assert done.result.backend == "reference"


@pytest.mark.parametrize(
    ("line", "says"),
    [("nothing", "not a verb"), ("run {model} --backend tpu", "is not one of"),
     ("run {absent}", "no variable"), ("run absent.onnx", "absent.onnx"), ("run 'x", "quotation"),
     ("run 'a #1.onnx' # first", "a #1.onnx"), ("run a\0b", "NUL"), ("run a#b.onnx", "a#b.onnx")],
)  # fmt: skip
def test_an_error_is_one_line(shell: Any, line: str, says: str, capsys: Any) -> None:
    assert shell.run_cell(f"%lite {line}").result is None
    out = capsys.readouterr().out.strip()
    assert out.startswith("error: ") and says in out and "\n" not in out


@pytest.mark.parametrize("line", ["", "--help", "run --help"])
def test_help(shell: Any, line: str, capsys: Any) -> None:
    shell.run_cell(f"%lite {line}")
    assert "run" in capsys.readouterr().out


def test_completion(shell: Any) -> None:
    assert set(complete(shell, "%lite ")) == set(available())
    assert complete(shell, "%lite pro") == ["profile"]
    assert "{model}" in complete(shell, "x = %lite profile {m")
    assert complete(shell, "%lite profile {model} --back") == ["--backend"]
    assert complete(shell, "%lite profile {model} --backend op") == ["opencl"]
    assert "--tap" in complete(shell, "%%lite\nrun {model} --ta")
    shell.run_cell("import lite_workbench\ns = lite_workbench.open(model)")
    assert complete(shell, "%lite compare {model} --until /b3/d")[:1] == ["/b3/dw/Conv"]


def test_files_are_completed_and_nothing_of_python(
    shell: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nets").mkdir()
    for name in ("one.onnx", "notes.txt", "nets/two.tflite", "nets/.hidden.onnx"):
        (tmp_path / name).write_bytes(b"")
    assert set(complete(shell, "%lite info ")) == {"nets/", "one.onnx", "{model}"}
    assert complete(shell, "%lite info ne") == ["nets/"]
    assert complete(shell, "%lite info nets/") == ["nets/two.tflite"]
    assert complete(shell, "%lite info absent") == complete(shell, "%lite info no/where") == []
    assert complete(shell, "%lite run one.onnx --input no") == ["notes.txt"]


def test_unloading_takes_it_away(shell: Any) -> None:
    shell.run_line_magic("unload_ext", "lite_workbench")
    assert "lite" not in shell.magics_manager.magics["line"]
    assert complete(shell, "%lite prof") == []
