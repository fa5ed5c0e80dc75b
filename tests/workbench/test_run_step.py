"""The Run step: answers stand side by side only where they are answers to one input."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ipywidgets", reason="pip install 'lite-workbench[lab]'")

import lite_workbench as lw
import numpy as np
import onnx
from lite_engine.errors import ShapeError
from lite_workbench.answers import Run
from lite_workbench.steps import step_class
from lite_workbench.steps._base import side_name
from lite_workbench.workbench import step_states
from onnx import helper

from tests.workbench.sessions import click, settle

pytestmark = pytest.mark.cpu
IMAGE = "digits.png"


def other_image() -> np.ndarray:
    """A digit that is not the one of the image."""
    with np.load(lw.shipped("digits_held_back.npz")) as held:
        number = next(i for i, label in enumerate(held["labels"]) if label != 7)
        return held["images"][number]


def test_an_answer_is_not_compared_with_that_to_an_earlier_input(
    session: lw.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the second side still runs on a new input, its older answer is gone."""
    step = lw.Workbench(session, step="Run").step("Run")
    step.drop.picked = str(lw.shipped(IMAGE))
    settle(session)
    first, second = step.cards.values()
    assert first.items and second.items and "outputs agree" in step.notice.what
    reached, go = threading.Event(), threading.Event()
    run = session.run

    def held(image: object = None, backend: str = "auto", version: str | None = None) -> Run:
        if backend != "x86":
            reached.set()
            go.wait(30)
        return run(image, backend, version)

    monkeypatch.setattr(session, "run", held)
    session.set_input(other_image())
    click(step.header, "run")
    assert reached.wait(30)
    assert first.items and second.items == [] and second.image == b""
    assert second.status["title"].startswith("Running on ") and step.notice.layout.display == "none"
    assert step_states(session)["Run"] == ("done", "1 backend")
    go.set()
    settle(session)
    assert second.items and "outputs agree" in step.notice.what


def test_a_side_that_is_shown_again_keeps_its_answer(session: lw.Session) -> None:
    session.run(lw.shipped(IMAGE), "x86")
    step = step_class("Run")(session)
    click(step.header, "run")
    settle(session)
    a, b = step.cards
    items = step.cards[b].items
    step.header.values = {**step.header.values, "b": "x86", "a": b}
    assert list(step.cards) == [b, a]
    assert step.cards[b].items == items and step.cards[a].items
    step.close()


def test_a_run_in_python_on_another_input_leaves_one_answer(session: lw.Session) -> None:
    session.run(lw.shipped(IMAGE), "x86")
    session.run(None, "reference")
    assert step_states(session)["Run"] == ("done", "2 backends")
    step = step_class("Run")(session)
    session.run(other_image(), "x86")
    shown = step.cards
    assert shown["x86"].items and shown["reference"].items == []
    assert "not run on this input" in shown["reference"].status["title"]
    assert step_states(session)["Run"] == ("done", "1 backend")
    assert Path(step.header.note).name == "data from Python"
    step.close()


def reads_text() -> object:
    """A model of two inputs of integers whose lengths are open."""
    length = "n"
    ports = [helper.make_tensor_value_info(name, 7, [1, length]) for name in ("ids", "mask")]
    graph = helper.make_graph(
        [helper.make_node("Mul", ["ids", "mask"], ["y"], "mul")],
        "text", ports, [helper.make_tensor_value_info("y", 7, [1, length])],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def test_a_model_without_an_image_is_offered_none(tmp_path: Path, monkeypatch: Any) -> None:
    """Neither images beside it, nor folders of them to calibrate on, nor words about images."""
    monkeypatch.chdir(tmp_path)
    onnx.save(reads_text(), "text.onnx")
    Path("photos").mkdir()
    for name in ("cat.png", "photos/a.png", "photos/b.png"):
        shutil.copy(lw.shipped(IMAGE), name)
    bench = lw.Workbench(lw.open("text.onnx", shapes={"ids": (1, 4), "mask": (1, 4)}))
    run, quantize = bench.step("Run"), bench.step("Quantize")
    assert run.drop.choices == [] and "image" not in run.drop.accept
    empty = next(iter(run.cards.values())).status
    assert "has not run yet" in empty["title"] and "image" not in empty["text"]
    assert not quantize.header.values["samples"] and "images" not in quantize.notice.detail
    assert quantize.range.status["title"] == "No value ranges yet"


def test_a_notice_leads_to_where_it_is_fixed(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    onnx.save(reads_text(), "text.onnx")
    np.save("ids.npy", np.zeros((1, 4), np.int64))
    bench = lw.Workbench("text.onnx", step="Run")
    run = bench.step("Run")
    click(run.header, "run")
    with pytest.raises(ShapeError):
        settle(bench.session)
    assert "the sizes of input ids are open" in run.notice.what
    assert "--shape ids:1x16 --shape mask:1x16" in run.notice.detail
    assert [label for _, label, _ in run.notice.actions] == ["Fix the input sizes"]
    assert "failed" in bench.top.note
    click(run.notice, "sizes_open")
    assert bench.current == "Check"
    click(bench.step("Check").notice, "sizes")
    assert bench.top.note == "", "of the model before"
    # one file for a model of two inputs
    session = bench.session
    session.convert(targets=["x86"])
    run = bench.step("Run")
    np.save("ids.npy", np.zeros((1, 16), np.int64))
    run._start("ids.npy")
    with pytest.raises(ShapeError):
        settle(session)
    assert "input mask" in run.notice.what and "is missing" in run.notice.what
    assert "ids: i64" in run.notice.detail
    click(run.notice, "inputs")
    assert run.inputs.view.layout.display is None


def test_what_runs_is_named_as_people_call_it(session: lw.Session) -> None:
    """Both sides, and OpenCL in its own spelling."""
    bench = lw.Workbench(session, step="Run")
    titles: list[str] = []
    session.observe(lambda _, job: titles.append(job.title), "job")
    bench.step("Run").header.values = {**bench.step("Run").header.values, "b": "reference"}
    click(bench.step("Run").header, "run")
    settle(session)
    assert set(titles) == {"Running on x86 and reference"}
    assert side_name("opencl") == "OpenCL" and side_name("int8") == "int8"


def test_profile_and_quantize_offer_the_targets_as_they_are(session: lw.Session) -> None:
    """Targets that were chosen after the step was opened."""
    session.profile("x86", runs=2)
    bench = lw.Workbench(session)
    steps = [bench.step(name) for name in ("Profile", "Quantize")]
    session.convert(targets=["arm"])
    offered = [[name for name, *_ in step.header.segments["options"]] for step in steps]
    # the profile on show keeps its name; nothing is quantized for a target that is gone
    assert offered == [["arm", "x86"], ["arm"]]
    assert [step.header.values["backend"] for step in steps] == ["x86", "arm"]


def test_a_run_of_another_version_is_not_forgotten(session: lw.Session) -> None:
    """The tab counts it, so the card says which version is the one that has not run."""
    session.run(lw.shipped(IMAGE), backend="x86")
    session.quantize(lw.shipped("digits_held_back.npz"), limit=8, force=True)
    bench = lw.Workbench(session, step="Run")
    cards = bench.step("Run").cards
    titles = {name: card.status["title"] for name, card in cards.items()}
    assert titles.pop("x86") == "x86 has not run version int8 yet"
    assert list(titles.values()) == [f"{side_name(name)} has not run yet" for name in titles]
    session.run(backend="x86")
    assert not cards["x86"].status and cards["x86"].items
