"""What a step shows when it is opened: the right model, its selection, and only what is true."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("ipywidgets", reason="pip install 'lite-workbench[lab]'")

import lite_workbench as lw
from lite_workbench.steps import step_class
from lite_workbench.views import facts_data, graph_data, support_data
from onnx import helper

from tests.small_models import classifier
from tests.workbench.sessions import click
from tests.workbench.test_odd_models import relu, tiny

pytestmark = pytest.mark.cpu


def test_a_step_that_is_opened_while_a_model_is_replaced_is_that_of_the_new_one(
    session: lw.Session, monkeypatch: Any
) -> None:
    """JupyterLab hands clicks to threads of their own."""
    bench, other = lw.Workbench(session), lw.open(session.path)
    opening, loaded = threading.Event(), threading.Event()
    run, build = step_class("Run"), step_class("Run").build

    def slow(step: Any) -> None:
        opening.set()
        loaded.wait(0.5)
        build(step)

    monkeypatch.setattr(run, "build", slow)
    click = threading.Thread(target=lambda: bench.set_trait("current", "Run"))
    click.start()
    assert opening.wait(10)
    bench.load(other)
    loaded.set()
    click.join()
    bench.current = "Run"
    assert bench.step("Run").session is other
    assert bench.body("Run").children == (bench.step("Run"),)
    bench.current = "Model"
    bench.load(session)
    assert bench.body("Run").children == (), "nothing of the model before is left"


def test_what_a_step_selects_on_arrival_is_selected_in_its_views(session: lw.Session) -> None:
    """A profile that was made before the step was opened, and nothing selected."""
    session.profile("x86", runs=2)
    step = step_class("Profile")(session)
    assert session.selected
    views = (step.chart, step.graph, step.table, step.roofline, step.memory, step.timeline)
    assert [view.selected for view in views] == [session.selected] * len(views)


def test_check_counts_what_falls_back_on_the_targets() -> None:
    """Before there are targets, all of them count."""
    support = [
        SimpleNamespace(op="NonZero", target=t, supported=t != "opencl", backend="cpu")
        for t in ("x86", "arm", "opencl")
    ]
    info = SimpleNamespace(support=support, assumed={}, hints=[])
    said = {
        targets: step_class("Check").result(SimpleNamespace(info=info, targets=list(targets)))
        for targets in ((), ("x86",), ("x86", "opencl"))
    }
    falls = ("attention", "1 falls back")
    assert said == {(): falls, ("x86",): ("done", "all supported"), ("x86", "opencl"): falls}
    # what runs nowhere does not fall back
    support += [SimpleNamespace(op="Odd", target="x86", supported=False, backend="")]
    unsupported = ("attention", "1 unsupported")
    assert step_class("Check").result(SimpleNamespace(info=info, targets=[])) == unsupported


def test_an_unknown_operator_is_explained_once(tmp_path: Path) -> None:
    """The reason is the same for each target; multiply-adds that are not known are not 0."""
    node = helper.make_node("Odd", ["x"], ["y"], "odd", domain="com.example")
    ports = [helper.make_tensor_value_info(name, 1, [1, 4]) for name in "xy"]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.example", 1)]
    graph = helper.make_graph([node], "g", ports[:1], ports[1:])
    path = tmp_path / "odd.onnx"
    path.write_bytes(
        helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    )
    info = lw.open(path).info
    (row,) = support_data(info)["rows"]
    assert row["why"].count("the operator is unknown") == 1
    assert row["why"].startswith("x86, arm, OpenCL: ")
    figures = {name: value for name, value, *_ in facts_data(info)["big"]}
    assert figures["multiply-adds"] == "–"


def test_multiply_adds_say_which_sizes_they_are_of(tmp_path: Path) -> None:
    """Where the file leaves them open; what is one is not called many."""
    path = tiny(tmp_path / "open.onnx", relu(), {"x": ["batch", 4]}, "y")
    notes = {name: note for name, *_, note in facts_data(lw.open(path).info)["big"]}
    assert notes["multiply-adds"] == "for x 1×4" and notes["parameters"] == ""
    fixed = lw.open(path, shapes={"x": (2, 4)}).info
    assert [note for *_, note in facts_data(fixed)["big"]] == ["as in the file", "", ""]
    assert support_data(fixed)["note"] == "1 operator type, 1 layer"


def test_targets_that_are_in_use_are_not_offered_again(session: lw.Session) -> None:
    bench = lw.Workbench(session, step="Target")
    step = bench.step("Target")
    assert step.header.buttons[-1]["label"] == "Convert"
    click(step.header, "use")
    assert bench.current == "Convert" and session.job is None, "nothing is converted anew"
    step.cards.chosen = ["x86", "opencl"]
    assert step.header.buttons[-1]["label"] == "Use 2 targets"
    session.convert(targets=["x86", "opencl"])
    assert step.header.buttons[-1]["label"] == "Convert"
    step.cards.chosen = []
    assert step.header.buttons[-1]["disabled"]


def test_an_open_size_is_a_question_mark_in_the_graph() -> None:
    graph = classifier("n")
    graph.outputs[0].shape = ("n", None)
    data = graph_data(graph)
    assert data["inputs"][0]["shape"] == ["n", 3, 20, 20]
    assert data["outputs"][0]["shape"] == ["n", "?"]


def test_emulated_runs_have_no_changes(session: lw.Session) -> None:
    """Not "only one run so far", however many there were."""
    session.profile("x86", runs=2)
    emulated = session.profile("x86", runs=2)
    emulated.times_meaningful = False
    step = step_class("Profile")(session)
    assert step.changes.status["title"] == "No times to compare" and not step.changes.runs
    assert step.timeline.status["title"] == "No timeline under emulation"
    session.profile("x86", runs=2)
    assert step.timeline.status == {} and step.timeline.timeline
