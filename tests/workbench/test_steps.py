"""Steps and Workbench without a browser: what a click does to the session, and what is shown."""

from __future__ import annotations

import contextlib
import threading
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ipywidgets", reason="pip install 'lite-workbench[lab]'")

import lite_workbench as lw
import numpy as np
from lite_engine import optimize, settings
from lite_engine.errors import CalibrationError, UsageError
from lite_engine.progress import tell
from lite_engine.runtime.inputs import random_feeds
from lite_workbench.jobs import duration
from lite_workbench.steps import STEPS, step_class
from lite_workbench.workbench import step_states

from tests.small_models import Builder, classifier

pytestmark = pytest.mark.cpu


@pytest.fixture
def session(tmp_path: Path, monkeypatch: Any) -> lw.Session:
    monkeypatch.chdir(tmp_path)
    made = lw.open(lw.shipped("digits.onnx"))
    made.convert(targets=["x86"])
    return made


def click(widget: Any, action: str, **payload: Any) -> None:
    seq = (widget.action or {}).get("seq", 0) + 1
    widget.action = {"id": action, "seq": seq, **payload}


def settle(session: lw.Session) -> None:
    while session.jobs:
        session.jobs[-1].wait(60)
    if session.job is not None:
        session.job.wait(60)


@pytest.mark.parametrize("name", [n for n in STEPS if n not in ("Profile", "Compare")])
def test_each_step_works_alone(session: lw.Session, name: str) -> None:
    step = step_class(name)(session)
    assert step.header.title.endswith("?")
    assert step.notice.layout.display == "none" or step.notice.what
    shown = step._repr_mimebundle_()["text/html"]
    assert any(mark in shown for mark in ("<svg", "<table", "<pre", "<h"))
    step.close()


def test_first_paint_makes_only_the_open_step(session: lw.Session) -> None:
    bench = lw.Workbench(session)
    assert list(bench._steps) == ["Model"] and bench.body("Profile").children == ()
    assert bench.top.title == "digits.onnx"
    assert "import lite_workbench" in bench.code.lines[0]
    assert "<h3>" in bench.static_html()


def test_a_step_shows_its_work_and_what_the_engine_does(session: lw.Session) -> None:
    """What runs, n of m and what waits; the older result stays and says of when it is."""
    session.run(backend="x86")
    run = step_class("Run")(session)
    told, go = threading.Event(), threading.Event()

    def work() -> None:
        tell("compiling kernels", 3, 12)
        told.set()
        go.wait(10)

    session.start("Running on x86", work, "Run")
    later = session.start("Profiling x86", lambda: None, "Profile")
    told.wait(10)
    now, then = run.running.jobs
    assert (now["title"], now["done"], now["total"]) == ("Running on x86: compiling kernels", 3, 12)
    assert then["state"] == "waiting" and then["title"] == "Profiling x86"
    assert run.running.shown.startswith("x86 at ") and "lite-stale" in run._dom_classes
    assert [b["disabled"] for b in run.header.buttons] == [True]
    waiting = run.cards[next(name for name in run.cards if name != "x86")].status
    assert waiting["title"].startswith("Running on ") and "button" not in waiting
    click(run.running, "cancel", job=then["id"])
    assert later.state == "cancelled" and len(run.running.jobs) == 1
    go.set()
    settle(session)
    assert run.running.jobs == [] and "lite-stale" not in run._dom_classes
    assert "lite-fresh" in run.header._dom_classes
    assert [b["disabled"] for b in run.header.buttons] == [False]
    run.close()


def test_run_then_compare(session: lw.Session) -> None:
    layer = session.model.graph.nodes[3].name
    session.plant_fault(layer, "overflow_fp16", backend="reference")
    bench = lw.Workbench(session, step="Run")
    run = bench.step("Run")
    run.drop.picked = str(lw.shipped("digits.png"))
    settle(session)
    assert set(session.runs) == {"x86", "reference"}
    assert [card.items for card in run.cards.values()] != [[], []]
    click(run.notice, "compare")
    settle(session)
    assert bench.current == "Compare"
    states = step_states(session)
    assert states["Run"][0] == "attention" and states["Compare"] == ("attention", "1 failing layer")
    compare = bench.step("Compare")
    assert compare.pair == ("x86", "reference")
    assert compare.strip.comparison["notice"]["layer"] == layer and session.selected == [layer]
    assert compare.pane.layer["name"] == layer and compare.pane.kind == "isolated"
    click(compare.strip, "run_on_a", layer=layer)
    settle(session)
    assert session.overrides.backends == {layer: "x86"}
    assert compare.strip.comparison["agrees"]
    assert "runs on x86" in compare.notice.what and "±" in compare.notice.what
    assert step_states(session)["Compare"] == ("done", "all agree")
    assert layer in bench.step("Deploy").notice.what


def test_profile_selects_everywhere(session: lw.Session) -> None:
    session.set_input(lw.shipped("digits.png"))
    bench = lw.Workbench(session, step="Profile")
    settle(session)
    step = bench.step("Profile")
    rows = [r for r in step.chart.profile["layers"] if not r.get("copy")]
    step.chart.selected = [rows[2]["name"]]
    assert session.selected == [rows[2]["name"]]
    for widget in (step.graph, step.table, step.roofline, step.memory):
        assert widget.selected == [rows[2]["name"]]
    assert step.inspector.layer["name"] == rows[2]["name"]
    click(step.inspector, "measure", layers=[rows[2]["name"]], backend="reference", precision="")
    settle(session)
    assert session.overrides.backends == {rows[2]["name"]: "reference"}
    assert "±" in step.inspector.measured["text"]
    assert "<svg" in step.chart.static_svg()
    memory = step.memory.memory
    assert max(t["offset"] + t["bytes"] for t in memory["tensors"]) <= memory["arena_bytes"]


def test_a_profile_keeps_its_version(session: lw.Session) -> None:
    session.profile("x86", runs=2)
    names = {n.name for n in session.predictor("x86").graph.nodes}
    session.quantize(np.load(lw.shipped("digits_held_back.npz"))["images"][:4], limit=4)
    step = lw.Workbench(session, step="Profile").step("Profile")
    assert {n["name"] for n in step.graph.graph["nodes"]} == names
    assert step.header.note.startswith("float · ")
    assert step.header.buttons[-1]["label"] == "Profile int8"
    session.use("float")
    assert step.header.buttons[-1]["label"] == "Run again"


def test_integers_are_not_quantized_again(session: lw.Session) -> None:
    images = np.load(lw.shipped("digits_held_back.npz"))["images"][:4]
    session.quantize(images, limit=4)
    made = lw.open(session.export("int8.lite"))
    with pytest.raises(CalibrationError, match="is already quantized"):
        made.quantize(images)
    step = step_class("Quantize")(made)
    assert step.header.buttons == [] and step.trade.status["title"] == "Already quantized"


def test_an_error_is_told_in_place(session: lw.Session, tmp_path: Path) -> None:
    bench = lw.Workbench(session, step="Run")
    run = bench.step("Run")
    (tmp_path / "bad.png").write_bytes(b"no picture")
    run.drop.picked = "bad.png"
    with pytest.raises(lw.LiteError):
        settle(session)
    assert run.notice.layout.display is None
    assert run.notice.what.startswith("**not an image") and run.notice.where == "bad.png"


def test_open_sizes_are_fixed_at_a_click(tmp_path: Path, monkeypatch: Any) -> None:
    """The hint offers the sizes that it assumed; the walk goes on there and the code repeats it."""
    monkeypatch.chdir(tmp_path)
    bench = lw.Workbench(lw.open(optimize(classifier("N")).save("m.lite")), step="Check")
    before, check = bench.session, bench.step("Check")
    assert check.notice.actions == [["sizes", "Use x 1×3×20×20", False]]
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
    assert [select["name"] for select in shown] == ["fit"], "how pixels become floats is known"
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
    assert run.header.values == {"pixels": "pm1", "fit": "crop"}
    run.header.values = {"pixels": "pm1", "fit": "letterbox"}
    x = made.set_input(wide)["x"]
    assert x[0, 0, 0, 0] == np.float32(114 / 127.5 - 1) and x.max() > 0.5
    run.header.values = {"pixels": "pm1", "fit": "stretch"}
    assert made.code[-1] == "session.prepare('stretch')" and made.set_input(wide)["x"].min() == -1
    made.prepare("imagenet,crop=0.9")
    assert run.header.values == {"pixels": "imagenet", "fit": "crop=0.9"}
    assert ["crop=0.9", "crop=0.9"] in run.header.selects[-1]["options"]
    made.prepare("mean=127,std=128")
    assert run.header.values == {"pixels": "own", "fit": "stretch"}
    run.header.values = {"pixels": "own", "fit": "letterbox"}
    assert made.metadata["preprocess"]["mean"] == (127,)
    assert "own" in dict(run.header.selects[0]["options"])
    run.header.values = {"pixels": "raw", "fit": "letterbox"}
    assert "own" not in dict(run.header.selects[0]["options"])


def test_only_samples_that_fit_are_offered(tmp_path: Path, monkeypatch: Any) -> None:
    """Those of another model have other shapes or names; those named like the model come first."""
    monkeypatch.chdir(tmp_path)
    image = np.zeros((3, 3, 20, 20), np.float32)
    np.savez("other.npz", x=np.zeros((3, 1, 32, 32), np.float32))
    np.savez("text.npz", tokens=np.zeros((3, 7), np.int64))
    np.savez("a_few.npz", x=image)
    np.savez("m_held.npz", image)
    (tmp_path / "broken.npz").write_bytes(b"PK nothing")
    made = lw.open(optimize(classifier()).save("m.lite"))
    header = lw.Workbench(made, step="Quantize").step("Quantize").header
    assert [text for _, text in header.selects[0]["options"]] == ["m_held.npz", "a_few.npz"]
    assert header.values["samples"].endswith("m_held.npz")


def test_a_dropped_image_says_where_it_lies(session: lw.Session, tmp_path: Path) -> None:
    run = lw.Workbench(session, step="Run").step("Run")
    run._picture("seven.png", lw.shipped("digits.png").read_bytes())
    settle(session)
    assert run.header.note == f"copied to {(tmp_path / 'seven.png').resolve()}"
    run.drop.picked = str(lw.shipped("digits.png"))
    settle(session)
    assert run.header.note == ""


def test_one_name_for_a_block(tmp_path: Path, monkeypatch: Any) -> None:
    """Names without scopes: chart, table, graph and strip take the graph's blocks."""
    monkeypatch.chdir(tmp_path)
    b = Builder((1, 8, 32, 32), "chain")
    y = b.x
    for i in range(40):
        y = b.conv(y, 8, 8, 3, strides=[2, 2] if i % 15 == 14 else [1, 1], activation="Relu")
    made = lw.open(optimize(b.done(y)).save("chain.lite"))
    made.profile("x86", runs=2)
    made.compare("x86", "reference")
    bench = lw.Workbench(made)
    profile, compare = bench.step("Profile"), bench.step("Compare")
    blocks = {n["name"]: n["block"] for n in profile.graph.graph["nodes"]}
    assert len(set(blocks.values())) > 2
    views = [profile.chart.profile, profile.table.profile, compare.strip.comparison,
             compare.graph.comparison]  # fmt: skip
    for rows in (view["layers"] for view in views):
        shown = {r["name"]: r["block"] for r in rows if r["name"] in blocks}
        assert len(shown) >= 40 and all(blocks[name] == block for name, block in shown.items())


@pytest.mark.parametrize(
    ("values", "field"),
    [({"name": "a b"}, "name"), ({"address": "nowhere"}, "address"),
     ({"name": "local"}, "name"), ({"ssh_config": "/no/config"}, "ssh_config")],
)  # fmt: skip
def test_the_board_form_marks_the_field(
    session: lw.Session, values: dict[str, str], field: str
) -> None:
    step = step_class("Target")(session)
    given = {"name": "pi", "address": "ssh://pi@10.0.0.5", "ssh_config": "", **values}
    click(step.form, "submit", values=given)
    assert list(step.form.errors) == [field] and step.form.errors[field]
    assert step.form.values == given, "what was typed stays"
    assert step.notice.layout.display == "none", "no path that has nothing to do with it"


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


def test_another_model_replaces_the_session(session: lw.Session, tmp_path: Path) -> None:
    bench = lw.Workbench(session)
    bench.step("Model")._arrived("ocr.onnx", lw.shipped("ocr.onnx").read_bytes())
    assert bench.top.title == "ocr.onnx" and bench.session is not session
    assert bench.current == "Model" and (tmp_path / "ocr.onnx").exists()
    step = bench.step("Model")
    step.guard(lambda: step._arrived("broken.onnx", b"\x08\x01"))
    assert step.notice.where.endswith("broken.onnx") and step.notice.what
    assert bench.top.title == "ocr.onnx", "a broken file leaves the open model alone"


def test_deploy_writes_what_is_ticked(session: lw.Session, tmp_path: Path) -> None:
    step = step_class("Deploy")(session)
    step.bundle.chosen = ["walk"]
    click(step.bundle, "write")
    settle(session)
    assert {p.name for p in (tmp_path / "digits_bundle").iterdir()} == {
        "digits.lite", "digits_walk.ipynb"
    }  # fmt: skip
    assert "Wrote" in step.notice.what
    step.bundle.chosen = ["device", "labels"]
    click(step.bundle, "write")
    settle(session)
    written = tmp_path / "digits_bundle"
    assert (written / "bin" / "lite_run").exists() and (written / "labels.txt").exists()
    assert set(step.code.sources) == {"Python", "C", "C++", "Java"}


def test_quantize_offers_versions(session: lw.Session) -> None:
    session.quantize(lw.shipped("digits_held_back.npz"), limit=12)
    session.explore()
    bench = lw.Workbench(session, step="Quantize")
    step = bench.step("Quantize")
    assert len(step.trade.points) == 5 and step.layers.layers
    assert step.range.layer["name"] == session.selected[0]
    step.trade.budget = 100.0
    assert step.trade.best >= 0
    click(step.header, "keep")
    settle(session)
    assert bench.current == "Run"


def test_precision_and_backend_of_selected_layers(session: lw.Session) -> None:
    session.set_input(lw.shipped("digits.png"))
    bench = lw.Workbench(session, step="Profile")
    settle(session)
    step = bench.step("Profile")
    convs = [n.name for n in session.base_model.graph.nodes if n.op == "Conv"]
    session.selected = convs[:2]
    assert step.inspector.precisions == ["int8"] and step.inspector.also == convs[:1]
    click(step.inspector, "measure", layers=convs[:1], backend="", precision="int8")
    assert "The model is not calibrated" in step.notice.what and session.version == "float"
    digits = np.load(lw.shipped("digits_held_back.npz"))["images"]
    session.quantize(digits[:20], limit=16)
    session.use("float")
    click(step.inspector, "measure", layers=convs[:2], backend="", precision="int8")
    settle(session)
    assert session.version == "custom"
    assert session.overrides.precisions == dict.fromkeys(convs[:2], "int8")
    assert "dB from float" in step.inspector.measured["text"]
    assert "session.override(" in session.code[-2]
    assert step_states(session)["Profile"][0] == "done" and "custom" in bench.top.versions
    # back to the plan: the button waits for a choice other than what holds
    assert step.inspector.current["precision"] == step.inspector.override_precision == "int8"
    click(step.inspector, "measure", layers=convs[:2], backend="", precision="")
    settle(session)
    assert session.version == "float" and session.overrides.precisions == {}
    # three profiles of one backend: the newest is explained against the one before
    assert step.changes.runs[-1][1].startswith("run ") and step.changes.status == {}
    assert " on x86 (" in step.changes.change["candidate"]


def test_boards_are_added_checked_and_removed(session: lw.Session, tmp_path: Path) -> None:
    """The emulator stands in for a board; an address that nobody answers tells stage and fix."""
    with settings.override(LITE_CACHE_DIR=str(tmp_path / "cache")):
        bench = lw.Workbench(session, step="Target")
        step = bench.step("Target")
        click(step.header, "add")
        assert step.form.layout.display is None
        lost = {"address": "ssh://nobody@127.0.0.1:9", "name": "lost", "ssh_config": ""}
        click(step.form, "submit", values=lost)
        settle(session)
        assert step.form.layout.display == "none"
        card = next(c for c in step.cards.cards if c["id"] == "lost")
        assert card["state"] == "broken" and card["stages"][0]["state"] == "attention"
        assert card["notice"]["detail"] and "Traceback" not in str(card)
        click(step.form, "submit", values={**lost, "address": "ssh://b@127.0.0.1"})
        assert "exists already" in step.form.errors["name"]
        click(step.form, "submit", values={**lost, "name": "b", "address": "http://x"})
        assert "not known" in step.form.errors["address"]

        click(step.form, "submit", values={"address": "local", "name": "here", "ssh_config": ""})
        settle(session)
        card = next(c for c in step.cards.cards if c["id"] == "here")
        assert card["state"] == "ready" and [s["state"] for s in card["stages"]] == ["done"] * 4
        click(step.cards, "use", card="here")
        settle(session)
        assert session.boards.used == "here" and session.boards.target == "x86"
        assert session.run(lw.shipped("digits.png"), backend="x86").text == "7"
        assert session.predictor("x86").device is session.boards.device
        click(step.cards, "remove", card="here")
        assert session.boards.used == "" and [e.name for e in session.boards] == ["lost"]
        assert "session.boards.use('here')" in session.code


@pytest.mark.parametrize("name", STEPS)
def test_every_step_tells_an_error_with_its_fix(session: lw.Session, name: str) -> None:
    session.set_input(lw.shipped("digits.png"))
    session.run(backend="x86")
    bench = lw.Workbench(session)
    step = bench.step(name)
    with contextlib.suppress(lw.LiteError):
        settle(session)
    session.notify("error", lw.LiteError("the emulator is missing", command="lite doctor"))
    assert step.notice.layout.display is None and step.notice.kind == "error"
    assert step.notice.what == "**the emulator is missing**" and step.notice.fix == "lite doctor"
    session.notify("error", ZeroDivisionError("division by zero"))
    assert "Traceback" not in step.notice.what and "ZeroDivisionError" in step.notice.what


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
        and "folder" in step.notice.detail
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
    assert step.header.values["samples"] == "samples.npz" and not step.header.buttons[0]["disabled"]


def test_a_guessed_preparation_is_said(tmp_path: Path, monkeypatch: Any) -> None:
    import onnx

    monkeypatch.chdir(tmp_path)
    bare = onnx.load(lw.shipped("digits.onnx"))
    del bare.metadata_props[:]
    onnx.save(bare, "bare.onnx")
    session = lw.open("bare.onnx")
    step = step_class("Run")(session)
    session.run(lw.shipped("digits.png"), backend="x86")
    session.run(backend="opencl" if "opencl" in step.cards else "reference")
    assert "does not define its image preprocessing" in step.notice.detail
    assert step.cards["x86"].aside == "", "a mean over classes says nothing"
    assert {len(card.image) > 0 for card in step.cards.values()} == {True}
    np.save("digit.npy", np.zeros((1, 1, 32, 32), np.float32))
    session.run("digit.npy", backend="x86")
    assert not session.image
    session.run(np.zeros((1, 1, 32, 32), np.float32), backend="x86")


def test_what_was_not_measured_offers_to_begin(session: lw.Session) -> None:
    begun = threading.Event()

    def long() -> None:
        while True:
            session.progress(1, 10**6)
            begun.set()
            time.sleep(0.01)

    job = session.start("Long", long)
    begun.wait(10)
    bench = lw.Workbench(session)
    profile, compare = bench.step("Profile"), bench.step("Compare")
    for step, chart in ((profile, profile.chart), (compare, compare.strip)):
        assert step.header.buttons[-1]["label"] == step.name
        assert step.header.buttons[-1]["disabled"] and "button" not in chart.status
        assert step.running.jobs[0]["title"] == "Long", "what it waits for"
    assert profile.graph.graph["nodes"], "the model is there before its times"
    assert [s["state"] for s in bench.stepper.steps if s["result"] == "waiting"] == ["running"] * 2
    for waiting in session.jobs[1:]:
        waiting.cancel()
    for step, chart in ((profile, profile.chart), (compare, compare.strip)):
        assert chart.status["button"] == step.name and not step.header.buttons[-1]["disabled"]
    job.cancel()
    with pytest.raises(lw.LiteError):
        job.wait(10)
    click(profile.chart, "run")
    settle(session)
    assert profile.header.buttons[-1]["label"] == "Run again" and not profile.chart.status


def test_no_number_under_a_name_that_it_was_not_measured_for(session: lw.Session) -> None:
    """After x86 was profiled, the reference's name stands over nothing until it has run; likewise
    for a pair that was not compared."""
    session.profile("x86", runs=2)
    session.compare("x86", "reference")
    bench, go = lw.Workbench(session), threading.Event()
    profile, compare = bench.step("Profile"), bench.step("Compare")
    session.start("Waiting", lambda: go.wait(10))
    assert profile.line.profile["backend"] == "x86" and profile.inspector.layer is not None
    profile.header.values = {"backend": "opencl"}
    compare.header.values = {"a": "reference", "b": "x86"}
    views = [profile.line, profile.chart, profile.table, profile.graph, profile.roofline,
             profile.types, profile.copies, profile.matrix]  # fmt: skip
    assert [view.profile for view in views] == [None] * len(views)
    assert profile.inspector.layer is None and profile.memory.memory is None
    assert profile.header.note == "" and profile.notice.layout.display == "none"
    assert compare.strip.comparison is None and compare.pane.layer is None
    assert compare.graph.comparison is None and compare.header.note == ""
    profile.header.values = {"backend": "x86"}
    compare.header.values = {"a": "x86", "b": "reference"}
    assert profile.line.profile["backend"] == "x86" and profile.inspector.layer is not None
    assert compare.strip.comparison is not None
    for waiting in session.jobs[1:]:
        waiting.cancel()
    go.set()
    settle(session)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.2, "1 s"), (89, "89 s"), (91, "2 min"), (5399, "90 min"), (18137, "5 h")],
)
def test_time_left(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_a_fold_of_thousands_is_a_short_row(session: lw.Session) -> None:
    nodes = tuple(f"Constant_{i}" for i in range(4464))
    session.base_model.journal.rewrote("fold-constants", nodes)
    row = step_class("Convert")(session).journal.rows[-1]
    assert row["nodes"].startswith("Constant_0 + Constant_1 + ")
    assert row["nodes"].endswith(" + Constant_11 and 4452 more")


def test_one_target_is_one_target(session: lw.Session) -> None:
    assert step_states(session)["Target"] == ("done", "1 target")
