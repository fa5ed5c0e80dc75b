"""The steps that prepare: sizes, images and how they become floats, targets, samples."""

from __future__ import annotations

import io
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ipywidgets", reason="pip install 'lite-workbench[lab]'")

import lite_workbench as lw
import numpy as np
from lite_engine import optimize
from lite_engine.errors import CalibrationError, UsageError
from lite_engine.ir.journal import Journal
from lite_engine.runtime.inputs import random_feeds
from lite_workbench import views
from lite_workbench.recipes import RECIPES
from lite_workbench.steps import step_class
from lite_workbench.workbench import step_states
from PIL import Image

from tests.small_models import classifier
from tests.workbench.sessions import click, send, settle

pytestmark = pytest.mark.cpu


def test_integers_are_not_quantized_again(session: lw.Session) -> None:
    images = np.load(lw.shipped("digits_held_back.npz"))["images"][:4]
    session.quantize(images, limit=4)
    made = lw.open(session.export("int8.lite"))
    with pytest.raises(CalibrationError, match="is already quantized"):
        made.quantize(images)
    step = step_class("Quantize")(made)
    assert step.header.buttons == [] and step.trade.status["title"] == "Already quantized"


def test_open_sizes_are_fixed_at_a_click(tmp_path: Path, monkeypatch: Any) -> None:
    """The hint offers the sizes that it assumed; the walk goes on there and the code repeats it."""
    monkeypatch.chdir(tmp_path)
    bench = lw.Workbench(lw.open(optimize(classifier("N")).save("m.lite")), step="Check")
    before, check = bench.session, bench.step("Check")
    assert check.notice.what.startswith("**Fix the input sizes.**") and check.result(before)[1]
    assert "`lw.open('m.lite', shapes={'x': (1, 3, 20, 20)})`" in check.notice.detail
    assert check.notice.actions == [["sizes", "Use x 1×3×20×20", True]]
    click(check.notice, "sizes")
    assert bench.session is not before and bench.current == "Check"
    assert bench.session.graph.inputs[0].shape == (1, 3, 20, 20) and not bench.session.info.hints
    assert bench.session.code[-1] == "session = lw.open('m.lite', shapes={'x': (1, 3, 20, 20)})"
    assert bench.session.predictor("reference").run(random_feeds(bench.session.graph))


def test_how_pixels_become_floats_is_chosen_and_travels(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    made = lw.open(optimize(classifier()).save("m.lite"))
    run = lw.Workbench(made, step="Run").step("Run")
    picture = np.full((20, 20, 3), 255, np.uint8)
    assert made.set_input(picture)["x"].max() == 1
    run.header.values = {"pixels": "imagenet"}
    np.testing.assert_allclose(made.set_input(picture)["x"][0, :, 0, 0],
                               (255 - np.array([123.675, 116.28, 103.53]))
                               / np.array([58.395, 57.12, 57.375]), rtol=1e-5)  # fmt: skip
    assert made.code[-1] == "session.prepare('imagenet')"
    again = lw.open(made.export("again.lite"))
    shown = lw.Workbench(again, step="Run").step("Run").header.selects
    assert [select["name"] for select in shown] == ["a", "b", "fit"], (
        "how pixels become floats is known"
    )
    np.testing.assert_array_equal(again.set_input(picture)["x"], made.feeds["x"])


def test_how_a_picture_fits_is_chosen_in_either_step(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    made = lw.open(optimize(classifier()).save("m.lite"))
    bench = lw.Workbench(made, step="Run")
    run, quantize = bench.step("Run"), bench.step("Quantize")
    names = [select["name"] for select in quantize.header.selects]
    assert names == ["method", "pixels", "fit"]
    wide = np.zeros((10, 40, 3), np.uint8)
    wide[:, :2] = wide[:, -2:] = 255  # a crop does not see them
    run.header.values = {**run.header.values, "fit": "crop"}
    assert made.code[-1] == "session.prepare('crop')" and made.set_input(wide)["x"].max() == 0
    assert quantize.header.values["fit"] == "crop"
    quantize.header.values = {**quantize.header.values, "pixels": "pm1"}
    assert made.code[-1] == "session.prepare('pm1,crop')" and made.set_input(wide)["x"].max() == -1
    assert run.header.values.items() >= {"pixels": "pm1", "fit": "crop"}.items()
    run.header.values = {"pixels": "pm1", "fit": "letterbox"}
    x = made.set_input(wide)["x"]
    assert x[0, 0, 0, 0] == np.float32(114 / 127.5 - 1) and x.max() > 0.5
    run.header.values = {"pixels": "pm1", "fit": "stretch"}
    assert made.code[-1] == "session.prepare('stretch')" and made.set_input(wide)["x"].min() == -1
    made.prepare("imagenet,crop=0.9")
    assert run.header.values.items() >= {"pixels": "imagenet", "fit": "crop=0.9"}.items()
    assert ["crop=0.9", "crop=0.9"] in run.header.selects[-1]["options"]
    made.prepare("mean=127,std=128")
    assert run.header.values.items() >= {"pixels": "own", "fit": "stretch"}.items()
    run.header.values = {"pixels": "own", "fit": "letterbox"}
    assert made.metadata["preprocess"]["mean"] == (127,)
    assert "own" in dict(run.header.selects[-2]["options"])
    run.header.values = {"pixels": "raw", "fit": "letterbox"}
    assert "own" not in dict(run.header.selects[-2]["options"])


def test_arrays_are_not_fitted(tmp_path: Path, monkeypatch: Any) -> None:
    """Samples in an .npz are inputs already: nothing about pictures is asked."""
    monkeypatch.chdir(tmp_path)
    np.savez("arrays.npz", x=np.zeros((2, 3, 20, 20), np.float32))
    Path("pictures").mkdir()
    (tmp_path / "pictures" / "one.png").write_bytes(b"")
    made = lw.open(optimize(classifier()).save("m.lite"))
    header = lw.Workbench(made, step="Quantize").step("Quantize").header
    arrays, pictures = (value for value, _ in header.selects[0]["options"])
    assert arrays.endswith("arrays.npz") and pictures.endswith("pictures")
    for samples, more in ((pictures, ["pixels", "fit"]), (arrays, [])):
        header.values = {**header.values, "samples": samples}
        assert [s["name"] for s in header.selects] == ["samples", "method", *more]


def test_a_running_job_keeps_its_pictures(session: lw.Session) -> None:
    go, run = threading.Event(), step_class("Run")(session)
    job = session.start("Waiting", lambda: go.wait(10))
    run.header.values = {"fit": "crop"}
    assert "Waiting still runs" in run.notice.what and run.header.values["fit"] == "stretch"
    assert all(select["disabled"] for select in run.header.selects)
    assert "fit" not in session.metadata["preprocess"]
    go.set()
    job.wait(10)


def test_a_file_s_damaged_preparation_is_said_anew(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    graph = classifier()
    graph.metadata["preprocess"] = {"resize": 256}
    made = lw.open(optimize(graph).save("m.lite"))
    run = lw.Workbench(made, step="Run").step("Run")
    picture = np.zeros((20, 20, 3), np.uint8)
    with pytest.raises(UsageError, match="has no 'resize'"):
        made.set_input(picture)
    run.header.values = {**run.header.values, "pixels": "pm1"}
    assert made.set_input(picture)["x"].max() == -1


def test_a_name_with_dots_stays_whole_and_sizes_are_those_written(tmp_path: Path, monkeypatch: Any):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net_0.25.onnx").write_bytes(lw.shipped("digits.onnx").read_bytes())
    session = lw.open("net_0.25.onnx")
    step = step_class("Deploy")(session)
    step.bundle.chosen = ["walk"]
    click(step.bundle, "write")
    settle(session)
    folder = tmp_path / "net_0.25_bundle"
    assert {p.name for p in folder.iterdir()} == {"net_0.25.lite", "net_0.25_walk.ipynb"}
    sizes = {item["file"]: item["bytes"] for item in step.bundle.items}
    for path in folder.iterdir():
        assert sizes[path.name] == path.stat().st_size
    assert session.export("plain").name == "plain.lite"
    (tmp_path / "blocked").write_text("")
    monkeypatch.setattr(type(step), "folder", Path("blocked"))
    click(step.bundle, "write")
    with pytest.raises(UsageError):
        settle(session)
    assert (
        step.notice.what == "**blocked is a file, but the bundle is a folder**"
        and step.notice.detail == "move or rename the file"
    )


def test_without_samples_it_says_where_to_put_them(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "digits.onnx").write_bytes(lw.shipped("digits.onnx").read_bytes())
    step = step_class("Quantize")(lw.open("digits.onnx"))
    assert "no calibration samples" in step.notice.what and str(tmp_path) in step.notice.detail
    assert "button" not in step.trade.status and step.header.buttons[0]["disabled"]
    (tmp_path / "samples.npz").write_bytes(lw.shipped("digits_held_back.npz").read_bytes())
    click(step.notice, "again")
    assert step.notice.layout.display == "none" and step.trade.status["button"] == "Quantize"
    assert (
        step.drop.layout.display == "none"
        and step.header.values["samples"] == "samples.npz"
        and not step.header.buttons[0]["disabled"]
    )


def test_dropped_samples_calibrate_at_once(tmp_path: Path, monkeypatch: Any) -> None:
    """Arrays that do not fit are refused with the shapes that would; nothing is said of images."""
    monkeypatch.chdir(tmp_path)
    made = lw.open(optimize(classifier()).save("m.lite"))
    step = step_class("Quantize")(made)
    assert step.drop.layout.display is None and step.recipes.view.layout.display == "none"
    wrong, right = io.BytesIO(), io.BytesIO()
    np.savez(wrong, x=np.zeros((3, 1, 7, 7), np.float32))
    np.savez(right, x=np.zeros((3, 3, 20, 20), np.float32))
    send(step.drop, "wrong.npz", wrong.getvalue())
    assert "wrong.npz does not hold samples" in step.notice.what
    assert "x 1×3×20×20" in step.notice.detail
    send(step.drop, "right.npz", right.getvalue())
    assert step.header.values["samples"] == "right.npz" and not step.header.buttons[0]["disabled"]
    assert step.notice.layout.display == step.drop.layout.display == "none"


def test_a_guessed_preparation_is_said_once(tmp_path: Path, monkeypatch: Any) -> None:
    import onnx

    monkeypatch.chdir(tmp_path)
    bare = onnx.load(lw.shipped("digits.onnx"))
    del bare.metadata_props[:]
    onnx.save(bare, "bare.onnx")
    session = lw.open("bare.onnx")
    step = step_class("Run")(session)
    session.run(lw.shipped("digits.png"), backend="x86")
    session.run(backend="opencl" if "opencl" in step.cards else "reference")
    told = [w.what + w.detail for w in (step.notice, step.recipes.notice)
            if w.layout.display is None]  # fmt: skip
    assert "".join(told).count("does not define its image preprocessing") == 1
    assert step.cards["x86"].aside == "", "a mean over classes says nothing"
    assert {len(card.image) > 0 for card in step.cards.values()} == {True}
    np.save("digit.npy", np.zeros((1, 1, 32, 32), np.float32))
    session.run("digit.npy", backend="x86")
    assert not session.image
    session.run(np.zeros((1, 1, 32, 32), np.float32), backend="x86")


def test_a_fold_of_thousands_is_a_short_row(session: lw.Session) -> None:
    nodes = tuple(f"Constant_{i}" for i in range(4464))
    session.base_model.journal.rewrote("fold-constants", nodes)
    row = step_class("Convert")(session).journal.rows[-1]
    assert row["nodes"].startswith("Constant_0 + Constant_1 + ")
    assert row["nodes"].endswith(" + Constant_11 and 4452 more")
    step = step_class("Convert")(session)
    assert {row["why"] for row in step.journal.rows} == {""}
    assert [column["id"] for column in step.journal.columns] == ["rule", "what", "nodes"]


def test_what_names_of_layers_begin_with_is_said_once() -> None:
    model = optimize(classifier())
    model.journal = journal = Journal()
    journal.rewrote("fuse-activation", ("net/stem/a/Conv", "net/stem/a/Clip"))
    journal.refused("fuse-conv-batch-norm", ("net/head",), "two layers read it")
    data = views.rewrites_data(model)
    assert data["note"] == "All names begin with net/" and data["columns"][-1]["id"] == "why"
    assert [row["nodes"] for row in data["rows"]] == ["head", "stem/a: Conv + Clip"]


def test_one_target_is_one_target(session: lw.Session) -> None:
    assert step_states(session)["Target"] == ("done", "1 target")


def test_recipes_are_shown_before_the_answers_where_the_file_is_silent(
    tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    made = lw.open(optimize(classifier(), targets=["x86"]).save("m.lite"))
    step = lw.Workbench(made, step="Run").step("Run")
    assert step.recipes.table.layout.display == "none"
    # said before anything is pressed; without an image there is nothing to compare yet
    notice = step.recipes.notice
    assert notice.layout.display is None and "does not define" in notice.what and not notice.actions
    pixels = np.random.default_rng(2).integers(0, 256, (20, 20, 3)).astype(np.uint8)
    Image.fromarray(pixels).save("photo.png")
    step.drop.picked = "photo.png"
    settle(made)
    assert (
        step.recipes.table.layout.display is None and "does not define" in step.recipes.table.note
    )
    assert notice.layout.display == "none", "the table says it"
    rows = {row["use"][2]["how"]: row for row in step.recipes.table.rows}
    assert set(rows) == {how for how, _ in RECIPES}
    for how, row in rows.items():
        other = lw.open("m.lite")
        other.prepare(how)
        answer = other.run("photo.png", backend="x86").answer
        assert row["text"] == answer.text and row["score"] == f"{answer.items[0]['score']:.3f}"
    click(step.recipes.table, "use", how="pm1")
    settle(made)
    assert "session.prepare('pm1')" in made.code and step.recipes.table.layout.display == "none"
    assert made.feeds["x"].min() < 0


def test_recipes_are_offered_before_a_run_where_an_image_is_there(
    tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    made = lw.open(optimize(classifier(), targets=["x86"]).save("m.lite"))
    pixels = np.random.default_rng(2).integers(0, 256, (20, 20, 3)).astype(np.uint8)
    Image.fromarray(pixels).save("m_photo.png")
    step = lw.Workbench(made, step="Run").step("Run")
    assert [action[0] for action in step.recipes.notice.actions] == ["recipes"]
    click(step.recipes.notice, "recipes")
    settle(made)
    told = [answer.text for answer in made.recipes("m_photo.png")]
    assert [row["text"] for row in step.recipes.table.rows] == told and not made.runs
    made.prepare("unit")  # the same numbers, but now they are known
    assert {w.layout.display for w in (step.recipes.notice, step.recipes.table)} == {"none"}


def test_two_versions_stand_side_by_side_in_run(tmp_path: Path, monkeypatch: Any) -> None:
    """Each card shows the answer of its own version, and Compare goes on with the same pair."""
    monkeypatch.chdir(tmp_path)
    made = lw.open(lw.shipped("digits.onnx"))
    made.convert(targets=["x86"])
    made.quantize(lw.shipped("digits_held_back.npz"), limit=16)
    bench = lw.Workbench(made, step="Run")
    step = bench.step("Run")
    offered = [value for value, _ in step.header.selects[0]["options"]]
    assert offered[:2] == list(made.versions) and "reference" in offered
    step.header.values = {**step.header.values, "a": "float", "b": "int8"}
    assert {card.status["kind"] for card in step.cards.values()} == {"empty"}
    step.drop.picked = str(lw.shipped("digits.png"))
    settle(made)
    for name, card in step.cards.items():
        expected = made.run(backend="auto", version=name)
        assert card.title == name and f" {name} " in card.note and card.status == {}
        assert card.items[0]["label"] == expected.answer.items[0]["label"]
        assert made.code[-1].endswith(f", version={name!r})")
    assert step.notice.what.startswith("**float and int8 outputs agree**")
    step.header.values = {**step.header.values, "b": "float"}
    assert list(step.cards) == ["float", "x86"], "two cards never show the same"
    bench.close()


def test_recipes_stand_before_quantization_and_evaluation(tmp_path: Path, monkeypatch: Any) -> None:
    """They are those of Run, of the first image; what is kept there is kept everywhere."""
    monkeypatch.chdir(tmp_path)
    made = lw.open(optimize(classifier(), targets=["x86"]).save("m.lite"))
    rng = np.random.default_rng(3)
    for label in ("3", "7"):
        folder = tmp_path / "val" / label
        folder.mkdir(parents=True)
        for number in range(2):
            pixels = rng.integers(0, 256, (20, 20, 3)).astype(np.uint8)
            Image.fromarray(pixels).save(folder / f"{number}.png")
    shutil.copytree(tmp_path / "val" / "7", tmp_path / "sevens")
    bench = lw.Workbench(made)
    evaluate, quantize = bench.step("Evaluate"), bench.step("Quantize")
    evaluate.header.values = {**evaluate.header.values, "data": "val"}
    click(evaluate.header, "run")
    settle(made)
    quantize.header.values = {**quantize.header.values, "samples": "sevens"}
    click(quantize.header, "run")
    settle(made)
    for step, first in ((evaluate, "3"), (quantize, "7")):
        assert step.recipes.table.layout.display is None
        told = made.recipes(str(tmp_path / "val" / first / "0.png"))
        assert [row["text"] for row in step.recipes.table.rows] == [r.text for r in told]
    assert [action[0] for action in evaluate.recipes.notice.actions] == ["recipes"]
    compare = bench.step("Compare")
    settle(made)
    assert compare.recipes.notice.layout.display == "none", "random inputs are no image"
    made.set_input(str(tmp_path / "val" / "7" / "1.png"))
    assert compare.recipes.notice.layout.display is None
    compare.measure()
    settle(made)
    told = made.recipes(str(tmp_path / "val" / "7" / "1.png"))
    assert [row["text"] for row in compare.recipes.table.rows] == [r.text for r in told]
    click(compare.recipes.table, "use", how="pm1")
    settle(made)
    assert made.feeds["x"].min() < 0, "compared again on the same image"
    hidden = {step.recipes.table.layout.display for step in (evaluate, quantize, compare)}
    assert hidden == {"none"} and set(made.metadata["preprocess"]["std"]) == {127.5}
    bench.close()
