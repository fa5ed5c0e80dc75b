"""Session.edit, Session.diff, and the diff as data of the graph widget."""

from __future__ import annotations

import json

import lite_workbench as lw
import pytest
from lite_engine import load
from lite_engine.errors import UsageError
from lite_widgets import GraphView
from lite_workbench import views
from lite_workbench.cli import main
from lite_workbench.rich import _VIEWS
from lite_workbench.steps import step_class

from tests.report.data import data_of
from tests.workbench.sessions import click


@pytest.fixture
def session(root):
    return lw.open(root / "notebooks/models/digits.onnx")


def test_edit_writes_a_file_and_remembers_its_line(session, tmp_path):
    made = session.edit(tmp_path / "label.onnx", drop=["/Softmax"], append=["ArgMax:1"])
    assert made.refused == [] and lw.open(tmp_path / "label.onnx").info
    assert made.layers["after"] == made.layers["before"]
    assert session.code[-1].endswith("drop=['/Softmax'], append=['ArgMax:1'])")
    with pytest.raises(UsageError, match="there is no change 'drops'"):
        session.edit(tmp_path / "x.onnx", drops=["/Softmax"])
    with pytest.raises(UsageError, match=r"neither \.onnx nor \.lite"):
        session.edit(tmp_path / "x.tflite", batch=2)


def test_diff_names_what_changed_and_colours_the_graph(session, tmp_path):
    session.edit(tmp_path / "label.onnx", drop=["/Softmax"], append=["ArgMax:1"])
    made = lw.open(tmp_path / "label.onnx").diff(session.path)
    kinds = {c.kind: (c.before or c.after, c.op) for c in made.changes.changes}
    assert kinds["deleted"] == ("/Softmax", "Softmax") and kinds["added"][1] == "ArgMax"
    assert "- /Softmax (Softmax)" in repr(made)
    data = views.diff_data(made)
    assert {n["name"] for n in data["source_graph"]["nodes"]} >= {"/Softmax"}
    added = next(n for n in data["graph"]["nodes"] if n["op"] == "ArgMax")
    assert added["sources"] == []
    linked = [n for n in data["graph"]["nodes"] if n["sources"]]
    assert len(linked) == len(data["graph"]["nodes"]) - 1
    box = _VIEWS["ModelDiff"](made)
    (view,) = [w for w in box.children if isinstance(w, GraphView)]
    assert view.changes["changes"] == data["changes"]["changes"]


def test_the_same_model_has_no_changes(session):
    made = session.diff(session.path, optimized=True)
    assert made.changes.agrees
    assert session.code[-1].endswith("optimized=True)")


def test_the_selection_becomes_a_model_by_a_click(session, tmp_path, monkeypatch):
    """The button is there while layers are selected; a file that exists is left alone."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "digits-part.onnx").write_text("mine")
    step = step_class("Model")(session)
    assert [b["id"] for b in step.header.buttons] == ["next"]
    session.selected = ["/b3/dw/Conv", "/b3/Relu", "/b3/dw_norm/BatchNormalization"]
    assert [b["id"] for b in step.header.buttons] == ["extract", "next"]
    click(step.header, "extract")
    assert step.notice.kind == "done" and "digits-part-2.onnx" in step.notice.detail
    assert [n.op for n in load("digits-part-2.onnx").nodes] == [
        "Conv", "BatchNormalization", "Relu",
    ]  # fmt: skip
    assert (tmp_path / "digits-part.onnx").read_text() == "mine"


def test_the_page_about_two_files(session, tmp_path, capsys):
    session.edit(tmp_path / "label.onnx", drop=["/Softmax"], append=["ArgMax:1"])
    page = tmp_path / "changes.html"
    words = ["diff", str(session.path), str(tmp_path / "label.onnx"), "--report", str(page)]
    assert main(words) == 1
    shown = page.read_text()
    assert "digits.onnx → label.onnx" in shown and "1 added, 1 deleted" in shown
    held = json.dumps(data_of(shown))
    assert all(word in held for word in ("/Softmax", "ArgMax", "graph_view"))
