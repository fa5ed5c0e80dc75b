"""What nobody foresaw ends a verb in one line too."""

from __future__ import annotations

import json

import pytest
from lite_engine.ir import graph
from lite_workbench.cli import main

from tests.small_models import classifier


@pytest.fixture
def broken(tmp_path, monkeypatch) -> str:
    """A model file, and an engine that divides by zero when it walks the graph."""
    from lite_engine.model_file import Model

    path = tmp_path / "model.lite"
    Model(classifier()).save(path)
    monkeypatch.setattr(graph.Graph, "is_output", lambda *_: 1 // 0)
    return str(path)


def test_an_internal_error_is_one_line_with_its_place(broken: str, capsys) -> None:
    assert main(["convert", broken, "--precision", "fp16", "-o", f"{broken}.2"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "internal error, ZeroDivisionError" in line and "lite_engine/" in line
    assert "LITE_DEBUG=1" in line and "Traceback" not in line


def test_its_json_has_the_fields(broken: str, capsys) -> None:
    assert main(["info", broken, "--json", "-"]) in (0, 1)
    out = capsys.readouterr().out
    assert json.loads(out)


def test_debugging_shows_the_traceback(broken: str, capsys, monkeypatch) -> None:
    monkeypatch.setenv("LITE_DEBUG", "1")
    assert main(["convert", broken, "--precision", "fp16", "-o", f"{broken}.2"]) == 1
    assert "Traceback" in capsys.readouterr().err
