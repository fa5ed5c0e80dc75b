"""`lite runs diff --fail-above`: a change that made a model slower fails."""

from __future__ import annotations

import pytest
from lite_engine.history import History
from lite_workbench.cli import main

from tests.profile.profiles import made_up


@pytest.fixture(autouse=True)
def own_history(tmp_path, monkeypatch) -> None:
    """The runs of other tests stay out: what is asserted holds for the whole list."""
    monkeypatch.setenv("LITE_CACHE_DIR", str(tmp_path))


@pytest.mark.parametrize(
    ("percent", "code", "verdict"), [("9.9", 1, "over"), ("10.1", 0, "within"), ("0", 1, "over")]
)
def test_a_run_that_takes_longer(percent, code, verdict, capsys) -> None:
    # 2.0 ms before, 2.2 ms after: 10 %
    history = History()
    history.add(made_up([1.0, 0.9]), "a.onnx", tag="before")
    history.add(made_up([1.2, 0.9]), "a.onnx", tag="after")
    assert main(["runs", "diff", "before", "after", "--fail-above", percent]) == code
    assert f"+10.0 %: {verdict} the limit of {percent} %" in capsys.readouterr().out
    assert main(["runs", "diff", "after", "before", "--fail-above", percent]) == 0


def test_emulated_runs_are_judged_by_instructions(capsys) -> None:
    """Under emulation the second run takes half the time of the first and executes 20 % more."""
    history = History()
    for tag, ms, count in (("few", 2.0, 1000), ("many", 1.0, 1200)):
        run = made_up([ms], device="emulated", times_meaningful=False,
                      instructions={"run": count, "first_result": count})  # fmt: skip
        run.layers[0].instructions = count - 100
        history.add(run, "a.onnx", tag=tag)
    history.add(made_up([1.0]), "a.onnx", tag="timed")
    assert main(["runs", "diff", "few", "many", "--fail-above", "19"]) == 1
    said = capsys.readouterr().out
    assert "900 → 1,100" in said and "+20.0 %: over the limit of 19 %" in said and " ms" not in said
    assert main(["runs", "diff", "few", "many", "--fail-above", "21"]) == 0
    assert main(["runs", "diff", "few", "timed", "--fail-above", "50"]) == 2
    assert "emulated runs have no meaningful times" in capsys.readouterr().err
    assert main(["runs", "list"]) == 0
    listed = capsys.readouterr().out
    assert listed.count("emulated") == 2 and "1.1" in listed  # the local run's 1.0 ms and the rest
    assert "2.1" not in listed  # an emulated run's 2.0 ms and the rest


@pytest.mark.parametrize(
    "words", [["list", "--fail-above", "5"], ["diff", "1", "2", "--fail-above", "-5"]]
)
def test_what_cannot_be_judged(words, capsys) -> None:
    assert main(["runs", *words]) == 2
    assert "5" in capsys.readouterr().err
