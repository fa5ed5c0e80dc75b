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
from lite_engine.progress import tell
from lite_workbench.jobs import duration
from lite_workbench.steps import STEPS, step_class
from lite_workbench.workbench import step_states

from tests.small_models import Builder, classifier
from tests.workbench.sessions import click, settle

pytestmark = pytest.mark.cpu


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
    assert all(b["disabled"] and b["why"] for b in run.header.buttons)
    waiting = run.cards[next(name for name in run.cards if name != "x86")].status
    assert waiting["title"].startswith("Running on ") and "button" not in waiting
    click(run.running, "cancel", job=then["id"])
    assert later.state == "cancelled" and len(run.running.jobs) == 1
    go.set()
    settle(session)
    assert run.running.jobs == [] and "lite-stale" not in run._dom_classes
    assert "lite-fresh" in run.header._dom_classes
    assert not any(b["disabled"] for b in run.header.buttons)
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


def test_an_error_is_told_in_place(session: lw.Session, tmp_path: Path) -> None:
    bench = lw.Workbench(session, step="Run")
    run = bench.step("Run")
    (tmp_path / "bad.png").write_bytes(b"no picture")
    run.drop.picked = "bad.png"
    with pytest.raises(lw.LiteError):
        settle(session)
    assert run.notice.layout.display is None
    assert run.notice.what.startswith("**not an image") and run.notice.where == "bad.png"


def test_a_dropped_image_says_where_it_lies(session: lw.Session, tmp_path: Path) -> None:
    run = lw.Workbench(session, step="Run").step("Run")
    run._picture("seven.png", lw.shipped("digits.png").read_bytes())
    settle(session)
    assert run.header.note == f"copied to {(tmp_path / 'seven.png').resolve()}"
    run.drop.picked = str(lw.shipped("digits.png"))
    settle(session)
    assert run.header.note == "digits.png"


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


@pytest.mark.parametrize("name", STEPS)
def test_what_says_nothing_takes_no_room(session: lw.Session, name: str) -> None:
    """A notice, the line of what runs and the table of preprocessings leave no gap."""
    step = lw.Workbench(session, step=name).step(name)
    settle(session)
    assert step.running.layout.display == "none"
    recipes = getattr(step, "recipes", None)
    if recipes is not None:
        inner = (recipes.notice.layout.display, recipes.table.layout.display)
        assert (recipes.view.layout.display == "none") == (inner == ("none", "none"))


def test_an_open_size_is_a_question_mark_in_the_stepper(tmp_path: Path) -> None:
    model = lw.open(optimize(classifier("any")).save(tmp_path / "m.lite"))
    assert step_states(model)["Model"] == ("done", "?×3×20×20")


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


def test_another_model_replaces_the_session(session: lw.Session, tmp_path: Path) -> None:
    bench = lw.Workbench(session)
    bench.step("Model")._arrived("ocr.onnx", lw.shipped("ocr.onnx").read_bytes())
    assert bench.top.title == "ocr.onnx" and bench.session is not session
    assert bench.current == "Model" and (tmp_path / "ocr.onnx").exists()
    step = bench.step("Model")
    step.guard(lambda: step._arrived("broken.onnx", b"\x08\x01"))
    assert step.notice.where.endswith("broken.onnx") and step.notice.what
    assert bench.top.title == "ocr.onnx", "a broken file leaves the open model alone"


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
        assert "exists already; choose another name" in step.form.errors["name"].replace(":", ";")
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
    assert step.notice.what == "**internal error, ZeroDivisionError: division by zero**"
    assert "LITE_DEBUG=1" in step.notice.detail
    session.notify("error", PermissionError(13, "Permission denied", "/out/m.lite"))
    assert step.notice.what == "**Permission denied**" and step.notice.where == "/out/m.lite"


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
