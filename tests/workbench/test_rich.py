"""Displays: the widget in a notebook, HTML without widgets, a line in a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("IPython", reason="pip install 'lite-workbench[lab]'")
import lite_workbench as lw
from IPython.core.interactiveshell import InteractiveShell
from lite_engine import Predictor, load, write_onnx
from lite_engine.display import answer_html
from lite_engine.history.changes import changes
from lite_workbench import rich, views

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


def test_an_answer_names_blocks_as_the_workbench_does(tmp_path: Path) -> None:
    """Names of layers that are numbers say nothing of blocks: those are regions of the graph."""
    graph = load(lw.shipped("digits.onnx"))
    for number, node in enumerate(graph.nodes):
        node.name = str(number)
    session = lw.open(write_onnx(graph, tmp_path / "numbered.onnx"))
    session.convert(targets=["x86"])
    profile, comparison = session.profile("x86", runs=2), session.compare("x86", "reference")
    for alone, there in (
        (views.profile_data(profile), views.session_profile(session, "x86")),
        (
            views.comparison_data(comparison),
            views.session_comparison(session, ("x86", "reference")),
        ),
    ):
        named = [(row["name"], row["block"], row["region"]) for row in alone["layers"]]
        assert named == [(row["name"], row["block"], row["region"]) for row in there["layers"]]
        assert any(region.startswith("stage 2") for _, _, region in named)
    assert "graph" not in profile.to_dict() and "graph" not in comparison.to_dict()


def test_a_graph_and_a_predictor_are_a_line() -> None:
    graph = load(lw.shipped("ocr.onnx"))
    said = repr(graph)
    assert said.startswith(
        f"<Graph {graph.name}: {len(graph.nodes)} nodes, [<image: f32[1×3×48×320]>]"
    )
    assert len(said) < 160
    predictor = Predictor(graph, "reference")
    assert repr(predictor) == "<Predictor on reference fp32: ['image'] -> ['probability']>"


def test_large_numbers_have_no_exponent() -> None:
    html = answer_html("rates", ["samples/s"], [[20_021.4], [4649.27], [1e-7], [12_345_678.9]])
    assert re.findall(r">([^<>]+)</td>", html) == ["20021", "4649", "1e-07", "12345679"]


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


def test_interrupted_work_is_one_line(shell: Any, capsys: Any, monkeypatch: Any) -> None:
    """That of the engine is; what a person's own code was doing is shown by IPython."""

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("lite_workbench.state.measuring.predictor", interrupted)
    shell.run_cell("import lite_workbench as lw\ns = lw.open(lw.shipped('digits.onnx'))")
    shell.run_cell("s.convert(targets=['x86'])")
    capsys.readouterr()
    result = shell.run_cell("s.profile('x86')")
    assert isinstance(result.error_in_exec, KeyboardInterrupt), "Run All stops here"
    out = capsys.readouterr()
    assert (out.out + out.err).strip() == "error: interrupted"
    shell.run_cell("raise KeyboardInterrupt")
    out = capsys.readouterr()
    assert "error: interrupted" not in out.out + out.err


def test_a_space_that_was_read_is_seen() -> None:
    run = lw.open(lw.shipped("ocr.onnx")).run(lw.shipped("ocr_item.png"))
    assert run.text == "COFFEE 3.20"
    letters = re.findall("<tr><td>(.*?)</td>", run._repr_html_())
    assert "".join(letters) == "COFFEE␣3.20"
