"""Displays: the widget in a notebook, HTML without widgets, a line in a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("IPython", reason="pip install 'lite-workbench[lab]'")
import lite_workbench as lw
from IPython.core.interactiveshell import InteractiveShell
from lite_engine.history.changes import changes
from lite_workbench import rich

pytestmark = pytest.mark.cpu
VIEW = "application/vnd.jupyter.widget-view+json"


@pytest.fixture
def shell() -> Iterator[Any]:
    made = InteractiveShell.instance()
    made.display_formatter.active_types = made.display_formatter.format_types
    rich.install(made)
    yield made
    InteractiveShell.clear_instance()


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    session = lw.open(lw.shipped("digits.onnx"))
    session.convert(targets=["x86"])
    first, second = (session.profile("x86", runs=2) for _ in range(2))
    quantization = session.quantize(lw.shipped("digits_held_back.npz"), limit=8)
    session.explore()
    return {
        "session": session, "profile": first, "comparison": session.compare("x86", "reference"),
        "change": changes(first, second), "info": session.info, "quantization": quantization,
    }  # fmt: skip


KINDS = ("session", "profile", "comparison", "change", "info", "quantization")


@pytest.mark.parametrize("kind", KINDS)
def test_a_terminal_gets_one_line(shell: Any, answers: dict[str, Any], kind: str) -> None:
    data, _ = shell.display_formatter.format(answers[kind])
    assert VIEW not in data, "no kernel, no widget"
    assert "\n" not in data["text/plain"] and len(data["text/plain"]) < 240


@pytest.mark.parametrize("kind", KINDS)
def test_html_has_the_verdict_first(shell: Any, answers: dict[str, Any], kind: str) -> None:
    data, _ = shell.display_formatter.format(answers[kind])
    html = data["text/html"]
    assert html.startswith("<p><b>") and "<table>" in html
    assert html.count("<tr>") <= 21 and "<pre" not in html
    if kind == "comparison":
        assert "agree on all" in html.partition("</b>")[0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_notebook_gets_the_widget(shell: Any, answers: dict[str, Any], kind: str) -> None:
    shell.kernel = object()
    try:
        data, _ = shell.display_formatter.format(answers[kind])
    finally:
        del shell.kernel
    assert VIEW in data
    assert data["text/plain"] == repr(answers[kind]), "short also here"
    assert any(mark in data["text/html"] for mark in ("<svg", "<table")), "what a saved file shows"


def test_names_are_escaped() -> None:
    from lite_engine.display import answer_html

    assert "<script>" not in answer_html("<script>", ["<script>"], [["<script>", 1.0]])


def test_an_error_is_one_line(shell: Any, tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    (tmp_path / "chars.txt").write_text("a b c")
    monkeypatch.chdir(tmp_path)
    result = shell.run_cell("import lite_workbench as lw\nlw.open('chars.txt')")
    assert isinstance(result.error_in_exec, lw.LiteError), "Run All stops here"
    out = capsys.readouterr()
    said = (out.out + out.err).strip()
    assert said.startswith("error: ") and "chars.txt" in said and "\n" not in said
    monkeypatch.setenv("LITE_DEBUG", "1")
    shell.run_cell("lw.open('chars.txt')")
    out = capsys.readouterr()
    assert "Traceback" in out.out + out.err
