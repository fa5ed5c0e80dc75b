"""The Compare step says which version and which input its comparison is of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ipywidgets", reason="pip install 'lite-workbench[lab]'")

import lite_workbench as lw
import numpy as np
from lite_engine import Predictor

from tests.workbench.sessions import click, settle

pytestmark = pytest.mark.cpu
PAIR = ("x86", "reference")


def test_a_comparison_of_another_version_is_said_to_be(session: lw.Session) -> None:
    """The version is chosen in the top bar, too; the comparison on show stays what it was."""
    session.compare(*PAIR)
    bench = lw.Workbench(session, step="Compare")
    step = bench.step("Compare")
    assert step.header.note.startswith("random data · ")
    assert step.header.buttons[-1]["label"] == "Compare again"
    session.quantize(np.load(lw.shipped("digits_held_back.npz"))["images"][:4], limit=4)
    assert session.version == "int8"
    assert step.header.note.startswith("float · random data · ")
    assert step.header.buttons[-1]["label"] == "Compare int8"
    click(step.header, "compare")
    settle(session)
    assert step.header.note.startswith("int8 · ")
    assert step.header.buttons[-1]["label"] == "Compare again"
    # both sides are versions: no other one would be compared
    session.compare("float", "int8")
    session.use("float")
    assert step.pair == ("float", "int8") and step.header.buttons[-1]["label"] == "Compare again"


def test_a_kept_comparison_is_of_its_own_version(session: lw.Session, tmp_path: Path) -> None:
    """Its layers are looked at in that version, though another one was chosen when it was saved."""
    session.quantize(np.load(lw.shipped("digits_held_back.npz"))["images"][:4], limit=4)
    session.compare(*PAIR)
    session.use("float")
    again = lw.open(session.save(tmp_path / "kept"))
    assert again.version == "float" and again.compared_of[PAIR][0] == "int8"
    row = again.comparisons[PAIR].layers[-1]
    values = [one.values("x86", row.name, pair=PAIR) for one in (session, again)]
    np.testing.assert_array_equal(*values)
    step = lw.Workbench(again, step="Compare").step("Compare")
    assert step.header.note.startswith("int8 · ")
    assert step.header.buttons[-1]["label"] == "Compare float"


def test_the_evidence_is_of_the_input_that_was_compared(session: lw.Session) -> None:
    """Another input may have been set since: the numbers beside it are of the earlier one."""
    session.compare(*PAIR)
    step = lw.Workbench(session, step="Compare").step("Compare")
    row = session.comparisons[PAIR].layers[-1]
    session.selected = row.name
    before = step.pane.get_state()
    first = session.values("x86", row.name, pair=PAIR)
    session.set_input(None, seed=7)
    assert step.header.note.startswith("random data · ")
    session.selected = session.comparisons[PAIR].layers[0].name
    session.selected = row.name
    assert step.pane.get_state() == before
    np.testing.assert_array_equal(session.values("x86", row.name, pair=PAIR), first)
    # without a pair it is that of now
    assert not np.array_equal(session.values("x86", row.name), first)


@pytest.mark.parametrize(
    ("work", "version"),
    [
        (lambda session: session.compare(*PAIR), lambda s: s.compared_of[PAIR][0]),
        (lambda session: session.profile("x86", runs=2), lambda s: s.profiled["x86"][0]),
        (lambda session: session.run(backend="x86"), lambda s: s.runs["x86"].version),
    ],
    ids=["compare", "profile", "run"],
)
def test_a_version_that_is_chosen_meanwhile_is_not_the_one_measured(
    work, version, session: lw.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.quantize(np.load(lw.shipped("digits_held_back.npz"))["images"][:4], limit=4)
    execution = Predictor.execution

    def chosen_meanwhile(*given: Any, **named: Any) -> Any:
        session.use("float")
        return execution(*given, **named)

    monkeypatch.setattr(Predictor, "execution", chosen_meanwhile)
    work(session)
    assert (session.version, version(session)) == ("float", "int8")
