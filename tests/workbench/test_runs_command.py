"""`lite runs diff --fail-above`: a change that made a model slower fails."""

from __future__ import annotations

import pytest
from lite_engine.runtime.history import History
from lite_workbench.cli import main

from tests.runtime.profiles import made_up


@pytest.mark.parametrize(
    ("percent", "code", "verdict"), [("9.9", 1, "over"), ("10.1", 0, "within"), ("0", 1, "over")]
)
def test_a_run_that_takes_longer(percent, code, verdict, capsys) -> None:
    # 2.0 ms before, 2.2 ms after: 10 %
    history = History()
    history.add(made_up([1.0, 0.9]), "a.onnx", tag="before")
    history.add(made_up([1.2, 0.9]), "a.onnx", tag="after")
    assert main(["runs", "diff", "before", "after", "--fail-above", percent]) == code
    assert f"+10.0 %: {verdict} the {percent} %" in capsys.readouterr().out
    assert main(["runs", "diff", "after", "before", "--fail-above", percent]) == 0


@pytest.mark.parametrize(
    "words", [["list", "--fail-above", "5"], ["diff", "1", "2", "--fail-above", "-5"]]
)
def test_what_cannot_be_judged(words, capsys) -> None:
    assert main(["runs", *words]) == 2
    assert "5" in capsys.readouterr().err
