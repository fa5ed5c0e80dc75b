"""Float against int8 in the Compare step, its summary and the report: the answer comes first."""

from __future__ import annotations

import pytest

pytest.importorskip("ipywidgets", reason="pip install 'lite-workbench[lab]'")

import lite_workbench as lw
import numpy as np
from lite_workbench import views
from lite_workbench.report.sections import sections
from lite_workbench.steps import step_class
from lite_workbench.workbench import step_states

pytestmark = pytest.mark.cpu


@pytest.fixture
def session(session: lw.Session) -> lw.Session:
    """With an int8 version, and a picture of a 7."""
    session.quantize(np.load(lw.shipped("digits_held_back.npz"))["images"][:4])
    session.set_input(lw.shipped("digits.png"))
    return session


def test_int8_that_answers_like_float_is_no_error(session: lw.Session) -> None:
    """The answer comes first, in every place; layers over a strict tolerance explain it."""
    found = session.compare("float", "int8", tolerance=1e-4)
    assert not found.agrees and found.answer.same and found.answer.integers == "candidate"
    (output,) = found.outputs.values()
    assert found.answer.sqnr_db == output["sqnr_db"] > 15
    compare = step_class("Compare")(session)
    assert compare.pair == ("float", "int8")
    notice, text = compare.strip.comparison["notice"], session.run(version="float").text
    first = f"Same answer, {found.answer.sqnr_db:.1f} dB from float"
    assert notice["kind"] == "done" and notice["what"] == f"**{first}**: {text}."
    assert "exceed their tolerance, first " in notice["detail"]
    assert found.verdict.startswith(f"{first} ({text}); ".replace("Same", "same"))
    said = f"same answer, {found.answer.sqnr_db:.0f} dB"
    assert step_states(session)["Compare"] == ("done", said)
    for layer in ("/b1/pw/Conv", "/b5/Conv"):  # int8 makes the first of two nodes
        row = next(x for x in found.layers if x.name == layer)
        session.selected = [layer]
        for kind, figures in (("isolated", row.isolated), ("accumulated", vars(row))):
            compare.pane.kind = kind
            worst = compare.pane.detail["worst"]
            assert abs(worst["b"] - worst["a"]) == pytest.approx(figures["max_abs"], abs=1e-5)
    seen = session.look("/b1/pw/Conv", ("float", "int8"))
    apart = np.abs(seen.arrays["float"] - seen.arrays["int8"]).max()
    row = next(x for x in found.layers if x.name == "/b1/pw/Conv")
    assert apart == pytest.approx(row.max_abs, abs=1e-5)
    seen = session.look("/stem/Conv", ("float", "int8"))  # its channels are scaled in int8
    own, scaled = seen.arrays["float"], seen.arrays["int8"]
    assert np.linalg.norm(own - scaled) < 0.05 * np.linalg.norm(own)
    assert f"{found.verdict}." in [section.intro for section in sections(session)]


def test_int8_with_another_answer_is_a_warning(session: lw.Session) -> None:
    session.plant_fault("/ReduceMean.1", "drop_last_column", backend="x86")
    found = session.compare("float@reference", "int8@x86")
    assert found.answer.same is False and found.exit_code == 1
    notice = views.session_comparison(session, ("float@reference", "int8@x86"))["notice"]
    assert notice["kind"] == "warn" and notice["what"].startswith("**Different answers, ")
    assert notice["layer"] == "/ReduceMean.1" and "goes wrong at /ReduceMean.1" in notice["detail"]
    assert step_states(session)["Compare"] == ("attention", "answers differ")
    session.faults.clear()
    assert session.compare("reference", "x86").answer is None  # both are int8
