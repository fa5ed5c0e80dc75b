"""The Evaluate step: a data set in, metrics, every sample, and the way to one sample's layers."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ipywidgets", reason="pip install 'lite-workbench[lab]'")

import lite_workbench as lw
import numpy as np
from lite_engine import optimize
from lite_engine.errors import UsageError
from lite_engine.images import open_image
from lite_workbench import recommend_versions
from lite_workbench.data_sets import data_sets
from lite_workbench.steps import step_class
from lite_workbench.workbench import step_states

from tests.evaluate import made
from tests.workbench.sessions import click, opened, settle

pytestmark = pytest.mark.cpu


@pytest.fixture
def session(tmp_path: Path, monkeypatch: Any) -> lw.Session:
    """The digits model, with labeled images in the working folder."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(lw.shipped("digits_held_back.npz"), tmp_path / "digits.npz")
    return opened("x86")


def test_without_data_nothing_that_needs_it_can_be_pressed(
    tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(lw.shipped("digits.onnx"), tmp_path)
    step = lw.Workbench(lw.open("digits.onnx"), step="Evaluate").step("Evaluate")
    assert "no labeled data" in step.recommend.form.blocked
    assert step.header.buttons[-1]["disabled"] and not step.sweep.form.blocked
    shutil.copy(lw.shipped("digits_held_back.npz"), tmp_path / "digits.npz")
    step._use({"data": "digits.npz"})
    assert step.recommend.form.blocked == "" and not step.header.buttons[-1]["disabled"]


def test_one_sample_leads_to_its_layers(session: lw.Session) -> None:
    layer = session.model.graph.nodes[3].name
    session.plant_fault(layer, "overflow_fp16", backend="reference")
    bench = lw.Workbench(session, step="Evaluate")
    step = bench.step("Evaluate")
    assert ["digits.npz", "digits.npz"] in step.header.selects[0]["options"]
    step.header.values = {**step.header.values, "data": "digits.npz", "b": "reference",
                          "a": "x86", "limit": "100"}  # fmt: skip
    click(step.header, "run")
    settle(session)
    (made,) = session.evaluations
    assert session.code[-1] == (
        "evaluation = session.evaluate('digits.npz', ['x86', 'reference'], limit=100)"
    )
    # the planted overflow makes NaN of every answer: each is wrong, none ends the evaluation
    assert len(made.disagreements) == made.samples == 100
    assert made["reference"].main.value == 0
    assert "loses" in step.notice.what and step_states(session)["Evaluate"][0] == "attention"
    assert [row["0"] for row in step.metrics.rows] == ["x86", "reference"]
    assert len(step.samples.rows) == 100
    step.header.values = {**step.header.values, "rows": "changed"}
    assert len(step.samples.rows) == len(made.disagreements)
    (action, shown, payload) = step.samples.rows[0]["0"]
    assert (action, payload) == ("sample", {"sample": shown}) and shown == made.rows[0].name

    click(step.samples, "sample", **payload)
    settle(session)
    for card, name in zip(step.cards, ("x86", "reference"), strict=True):
        assert card.title == name and card.image[:4] == b"\x89PNG" and card.layout.display is None
    assert step.cards[0].items[0]["label"] == made.rows[0].sides["x86"].prediction
    assert step.cards[1].kind == "values" and "no finite values" in step.cards[1].note
    assert made.rows[0].label in step.looked.what
    click(step.looked, "layers")
    settle(session)
    assert bench.current == "Compare" and ("x86", "reference") in session.comparisons
    assert session.comparisons["x86", "reference"].finding.layer == layer
    np.testing.assert_array_equal(session.feeds["image"].shape[-2:], (32, 32))


def test_the_sweep_and_the_recommendation_use_the_same_data(
    session: lw.Session, monkeypatch: Any
) -> None:
    monkeypatch.setattr(recommend_versions, "METHODS", ("minmax",))  # the others take long
    monkeypatch.setattr(recommend_versions, "PRUNED", {})
    step = step_class("Evaluate")(session)
    step.header.values = {**step.header.values, "data": "digits.npz", "limit": "100"}
    values = {"backends": "x86", "precisions": "auto", "threads": "1", "batches": "1,x",
              "streams": "1", "max_ms": "1000"}  # fmt: skip
    click(step.sweep.form, "submit", values=values)
    assert step.sweep.form.errors["batches"].startswith("expected numbers") and not session.jobs
    click(step.sweep.form, "submit", values={**values, "batches": "1,2"})
    settle(session)
    (made,) = session.sweeps
    cells = step.sweep.chart.cells
    assert [c["throughput"] for c in cells] == [
        pytest.approx(c.throughput) for c in made.cells if c.status == "measured"
    ]
    assert [c["best"] for c in cells].count(True) == 1 and step.sweep.chart.max_ms == 1000
    assert cells[0]["note"].startswith("top-1") and step.sweep.form.errors == {}
    asked = step.recommend.asked({"max_drop": "2", "output": "best.lite"})
    assert asked["output"] == str(Path("best.lite").absolute()), "wherever the job will begin"
    click(step.recommend.form, "submit",
          values={"max_drop": "2", "max_ms": "1e9", "output": "best.lite"})  # fmt: skip
    settle(session)
    (answer,) = session.recommendations
    assert answer.max_drop == 0.02 and Path("best.lite").exists()
    assert answer.sentence in step.recommend.said.what
    assert len(step.recommend.table.rows) == len(answer.candidates)
    step.close()
    again = step_class("Evaluate")(session)  # what was found is there
    assert again.sweep.chart.cells and again.recommend.table.rows
    again.close()


def test_without_a_data_set_the_step_says_how_to_get_one(tmp_path: Path, monkeypatch: Any) -> None:
    """The button cannot be pressed, and the reason stands below it until a set is chosen."""
    monkeypatch.chdir(tmp_path)
    made = lw.open(shutil.copy(lw.shipped("digits.onnx"), tmp_path))
    made.convert(targets=["x86"])
    step = lw.Workbench(made, step="Evaluate").step("Evaluate")
    assert step.header.buttons[-1]["disabled"]
    assert "Other data…" in step.metrics.status["text"]
    assert "label" in step.samples.status["text"] and step.classes.status["title"]
    np.savez("few.npz", images=np.zeros((4, 32, 32), np.uint8), labels=np.arange(4))
    click(step.form, "submit", values={"data": "few.npz"})
    assert "Other data…" not in step.metrics.status["text"]
    click(step.header, "run")
    settle(step.session)
    assert step.metrics.status == step.samples.status == step.classes.status == {}


def test_other_data_by_its_path(session: lw.Session) -> None:
    step = step_class("Evaluate")(session)
    click(step.form, "submit", values={"data": "nowhere", "images": ""})
    assert step.form.errors == {"data": "no such file or folder"}
    Path("labels.txt").write_text("a.png 1\n")
    click(step.form, "submit", values={"data": "labels.txt", "images": "pictures"})
    assert step.header.values["data"] == "labels.txt" and step.form.layout.display == "none"
    click(step.header, "run")
    with pytest.raises(UsageError):
        settle(session)
    assert "no sample of 1 can be read" in step.notice.what
    step.close()


def test_data_sets_are_found_by_their_layout(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("photos/cat/1.png", "photos/dog/1.png", "seg/images/1.png", "seg/masks/1.png",
                 "plain/1.png", ".hidden/cat/1.png"):  # fmt: skip
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    np.savez("labeled.npz", images=np.zeros((2, 4, 4), np.uint8), labels=np.zeros(2))
    np.savez("inputs.npz", images=np.zeros((2, 4, 4), np.uint8))
    Path("coco.json").write_text('{"images": [], "annotations": []}')
    Path("other.json").write_text("{}")
    Path("damaged.npz").write_bytes(b"PK")
    found = [name for _, name in data_sets(tmp_path / "m.onnx")]
    assert found == ["coco.json", "labeled.npz", "photos/", "seg/"]


def test_a_segmented_sample_is_shown_with_its_classes(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    made.segmentation_set(tmp_path / "discs", 3)
    session = lw.open(optimize(made.colors_network(), targets=["x86"]).save("colors.lite"))
    session.prepare("unit")
    step = lw.Workbench(session, step="Evaluate").step("Evaluate")
    step.header.values = {**step.header.values, "data": "discs", "a": "x86"}
    click(step.header, "run")
    settle(session)
    click(step.samples, "sample", sample="01.png")
    settle(session)
    shown = np.asarray(open_image(step.cards[0].image), np.int16)
    plain = np.asarray(open_image(tmp_path / "discs" / "images" / "01.png"), np.int16)
    changed = (shown != plain).any(-1)
    scores = session.run(tmp_path / "discs" / "images" / "01.png", backend="x86")["scores"]
    classes = scores[0].argmax(0) > 0  # a pixel that has its class's color stays as it is
    assert not (changed & ~classes).any() and changed.sum() >= 0.99 * classes.sum() > 0
