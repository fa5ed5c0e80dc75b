"""Session.look: the values are those of a Predictor, of the file, and of the other side."""

from __future__ import annotations

from pathlib import Path

import lite_workbench as lw
import numpy as np
import pytest
from lite_engine import Predictor
from lite_engine.errors import UsageError
from lite_workbench.rich import bundle

from tests.workbench.sessions import opened

pytestmark = pytest.mark.cpu


def test_a_layer_of_the_file_is_what_onnxruntime_makes_of_it() -> None:
    from lite_engine.compare.originals import OnnxRuntimeSide

    pytest.importorskip("onnxruntime", reason="pip install onnxruntime")
    session = opened("x86")
    session.set_input(lw.shipped("digits.png"))
    node = session.graph.nodes[2]
    made = session.look(node.name, "file")
    theirs = OnnxRuntimeSide(session.path).values(session.feeds, [made.name])[made.name]
    np.testing.assert_allclose(made["file"], theirs, rtol=1e-4, atol=1e-5)
    assert (made.layer, made.role, made.source) == (node.name, "activation", "image")


def test_two_sides_and_weights() -> None:
    session = opened("x86")
    name = session.model.graph.nodes[0].name
    made = session.look(name, ("x86", "reference"))
    for side in made.arrays:
        wanted = Predictor(session.model, side).run(session.feeds, taps=[name])[name]
        np.testing.assert_array_equal(made[side], wanted)
    weight = next(t for t, _ in made.tensors if session.model.graph.find(t).is_const)
    looked = session.look(weight)
    assert looked.role == "weight" and looked.source == ""
    np.testing.assert_array_equal(looked["auto"], session.model.graph.find(weight).const)
    assert session.code[-1] == f"session.look({weight!r})"
    assert session.code[-2] == f"session.look({name!r}, ('x86', 'reference'))"


def test_the_source_is_named_as_the_input_is(tmp_path: Path) -> None:
    """Arrays are not said to be random, in a session that was saved, either."""
    session = opened("x86")
    name = session.model.graph.nodes[0].name
    assert session.look(name).source == "random data"
    session.set_input({v.name: np.ones(v.shape, np.float32) for v in session.graph.inputs})
    assert session.look(name).source == "data from Python"
    again = lw.open(session.save(tmp_path / "kept"))
    assert again.look(name).source == "saved input"
    session.set_input(None, seed=3)
    assert session.look(name).source == "random data of seed 3"


def test_looking_at_the_file_needs_no_layer_of_the_optimised_graph() -> None:
    session = opened("x86")
    kept = {n.name for n in session.model.graph.nodes}
    gone = next(n.name for n in session.graph.nodes if n.name not in kept)
    assert session.look(gone, "file").layer == gone
    with pytest.raises(UsageError, match="there is no layer or tensor"):
        session.look(gone, "x86")


def test_wrong_names_are_told() -> None:
    session = opened("x86")
    with pytest.raises(UsageError, match="cannot compare 'mars'"):
        session.look(session.model.graph.nodes[0].name, "mars")
    with pytest.raises(UsageError, match="one side or two different ones"):
        session.look(session.model.graph.nodes[0].name, ("x86", "x86"))


def test_in_a_notebook_it_is_displayed_as_the_widget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lite_workbench.rich.in_notebook", lambda: True)
    session = opened("x86")
    made = bundle(session.look(session.model.graph.nodes[0].name))
    assert made is not None and "data:image/png;base64," in made["text/html"]
    assert made["text/plain"].startswith("<Look ")
