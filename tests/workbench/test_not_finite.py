"""Outputs that hold infinities and NaNs: what is said of them, and where two answers differ."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("ipywidgets", reason="pip install 'lite-workbench[lab]'")

import lite_workbench as lw
import numpy as np
from lite_workbench.answers import answer
from lite_workbench.cli import main
from lite_workbench.workbench import step_states
from onnx import helper

from tests.workbench.sessions import click, settle
from tests.workbench.test_odd_models import tiny

pytestmark = pytest.mark.cpu
INF = float("inf")
#: Classes of which minus infinity rules all but three out.
MASKED = np.float32([[1, 2, 0.5, 0, 0, 0]])


def logarithm(folder: Path) -> Path:
    nodes = [helper.make_node("Log", ["x"], ["y"], name="log")]
    return tiny(folder / "log.onnx", nodes, {"x": [1, 6]}, "y")


@pytest.mark.parametrize(
    ("scores", "kind", "said"),
    [
        ([1, 2, INF, 0], "values", "0 … 2, 1 value is not finite"),
        ([-INF] * 4, "values", "no finite values"),
        ([1, 2, np.nan, np.nan], "values", "1 … 2, 2 values are not finite"),
        ([-INF, 1, -INF, 2], "top", "3"),
    ],
)
def test_an_infinite_score_is_no_answer(scores: list[float], kind: str, said: str) -> None:
    made = answer({"y": np.float32([scores])}, [])
    assert (made.kind, made.text or made.items[0]["text"]) == (kind, said)


def test_classes_that_are_ruled_out_have_no_score(tmp_path: Path, capsys) -> None:
    np.save(tmp_path / "x.npy", MASKED)
    assert main(["run", str(logarithm(tmp_path)), "--input", str(tmp_path / "x.npy")]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line[:1].isdigit()]
    assert [(row[0], row[2]) for row in rows][:4] == [
        ("1", "0.6931"), ("0", "0.0000"), ("2", "-0.6931"), ("3", "–"),
    ]  # fmt: skip
    session = lw.open(logarithm(tmp_path))
    assert "<td>–</td>" in session.run({"x": MASKED}, "reference")._repr_html_()


@pytest.mark.parametrize("spoiled", ["x86", "reference"])
def test_an_answer_and_none_differ(session: lw.Session, spoiled: str) -> None:
    """Whichever of the two sides has none."""
    session.plant_fault(session.model.graph.nodes[-2].name, "overflow_fp16", backend=spoiled)
    bench = lw.Workbench(session, step="Run")
    step = bench.step("Run")
    step.header.values = {**step.header.values, "a": "x86", "b": "reference"}
    session.set_input(lw.shipped("digits.png"))
    click(step.header, "run")
    settle(session)
    assert {run.answer.kind for run in session.runs.values()} == {"top", "values"}
    assert step.notice.layout.display is None and "outputs differ" in step.notice.what
    assert "values are not finite" in step.notice.what and "7" in step.notice.what
    assert [label for _, label, _ in step.notice.actions] == ["Compare x86 and reference"]
    assert step_states(session)["Run"] == ("attention", "outputs differ")
