"""What nobody foresaw ends a verb in one line too."""

from __future__ import annotations

import json

import pytest
from lite_engine.doctor import checks
from lite_workbench.cli import main


@pytest.fixture(autouse=True)
def broken(monkeypatch) -> None:
    """An engine that divides by zero when the doctor asks for the CPU."""
    monkeypatch.setattr(checks, "_cpu", lambda: 1 // 0)


def test_an_internal_error_is_one_line_with_its_place(capsys) -> None:
    assert main(["doctor"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "internal error, ZeroDivisionError" in line and "lite_engine/doctor/checks.py:" in line
    assert "LITE_DEBUG=1" in line


def test_its_json_has_the_fields(capsys) -> None:
    assert main(["doctor", "--json", "-"]) == 1
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["where"].startswith("lite_engine/doctor/checks.py:") and error["fix"]


def test_debugging_shows_the_traceback(capsys, monkeypatch) -> None:
    monkeypatch.setenv("LITE_DEBUG", "1")
    assert main(["doctor"]) == 1
    assert "Traceback" in capsys.readouterr().err
