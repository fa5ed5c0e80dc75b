"""A pipeline opens like a model: a session, int8 stage by stage, and its steps in the Workbench."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ipywidgets", reason="pip install 'lite-workbench[lab]'")

import lite_workbench as lw
import numpy as np
from lite_engine.errors import UsageError
from lite_engine.pipeline import Pipeline
from lite_engine.runtime import host_target
from lite_workbench.cli import main
from lite_workbench.pipelines.quantizing import quantize_stages
from lite_workbench.pipelines.session import PipelineSession
from lite_workbench.workbench import states_of
from PIL import Image

from tests.workbench.sessions import click, settle

pytestmark = pytest.mark.cpu


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: Any) -> Path:
    """Two stages of the digits model, images of digits, and their labels."""
    monkeypatch.chdir(tmp_path)
    with np.load(lw.shipped("digits_held_back.npz")) as held:
        names = sorted(held.files)
        images, labels = held["images"][:12], held["labels"][:12]
    assert names == ["images", "labels"]
    (tmp_path / "digits").mkdir()
    for i, (image, label) in enumerate(zip(images, labels, strict=True)):
        place = tmp_path / "digits" / str(label)
        place.mkdir(exist_ok=True)
        Image.fromarray(image.reshape(image.shape[:2])).save(place / f"{i}.png")
    Image.fromarray(images[0].reshape(images[0].shape[:2])).save(tmp_path / "digit.png")
    stages = [{"model": str(lw.shipped("digits.onnx")), "name": name} for name in ("one", "two")]
    (tmp_path / "two.json").write_text(json.dumps({"name": "two", "stages": stages}))
    return tmp_path


def test_a_pipeline_opens_as_a_session(folder: Path) -> None:
    session: Any = lw.open("two.json")
    assert isinstance(session, PipelineSession) and isinstance(
        lw.open(session.pipeline), PipelineSession
    )
    with pytest.raises(UsageError, match="no image yet"):
        session.run()
    answer = session.run("digit.png", host_target())
    assert answer["answers"] == Pipeline.open("two.json").run("digit.png")["answers"]
    made = session.profile(backend=host_target(), runs=2)
    assert [s.layers is not None for s in made.stages] == [True, True]
    assert not session.compare(host_target(), "reference").changes
    evaluated = session.evaluate("digits", [host_target(), "reference"])
    assert evaluated.task == "classification" and evaluated.samples == 12
    assert evaluated.sides[0].main.value > 0.8
    with pytest.raises(UsageError, match="no version 'int4'"):
        session.use("int4")
    # the code of the session repeats it
    again: dict[str, Any] = {}
    exec("\n".join(session.code), again)
    assert again["session"].code == session.code
    assert again["evaluation"].sides[0].main.value == evaluated.sides[0].main.value


def test_stages_are_int8_within_one_budget(folder: Path) -> None:
    session: Any = lw.open("two.json")
    made = session.quantize("digits", "digits", max_drop=0.2)
    assert session.versions["int8"] is made.pipeline and made.metric == "top-1"
    assert [s.int8 for s in made.stages] == [True, True] and made.float_value - made.value <= 0.2
    assert all(s.int8_bytes < 0.5 * s.float_bytes for s in made.stages)
    session.use("int8")
    assert session.run("digit.png")["answers"].keys() == {"one", "two"}
    evaluated = session.evaluate("digits", ["float", "int8"])
    assert evaluated.sides[1].main.value == pytest.approx(made.value)


class Spoils(Pipeline):
    """What its second model answers changes as soon as that one is not the original."""

    original: Any = None

    def but(self, *args: Any, **kwargs: Any) -> Pipeline:
        made = super().but(*args, **kwargs)
        made.__class__ = Spoils
        return made

    def runner_of(self, predictor: Any) -> Any:
        run = super().runner_of(predictor)
        if predictor.model is self.parts[1].model is not self.original:
            return lambda x: [np.roll(y, 1, axis=-1) for y in run(x)]
        return run


def test_a_stage_beyond_the_budget_stays_in_float(folder: Path) -> None:
    """Without labels the answers judge: the second model's change beyond the budget."""
    one = lw.pipeline(lw.shipped("digits.onnx")).parts[0].model
    stages = [{"model": one, "name": name} for name in ("one", "two")]
    pipeline = Spoils(stages, "spoils")
    Spoils.original = one
    made = quantize_stages(pipeline, "digits", max_drop=0.5)
    first, second = made.stages
    assert first.int8 and not second.int8 and "would fall to" in second.reason
    assert second.alone == 0 and made.metric == "same answers" and made.samples == 3
    assert made.pipeline.name == "spoils_int8"
    with pytest.raises(UsageError, match="no images"):
        quantize_stages(pipeline, [])


def test_the_walk_of_a_pipeline(folder: Path) -> None:
    bench = lw.Workbench("two.json")
    session: Any = bench.session
    names = ["Model", "Quantize", "Run", "Evaluate", "Profile", "Compare", "Deploy"]
    assert [s["name"] for s in bench.stepper.steps] == names
    steps: Any = {name: bench.step(name) for name in names}
    assert [c["name"] for c in steps["Model"].stages.stages] == ["one", "two"]
    assert [row["0"] for row in steps["Model"].models.rows] == ["one", "two"]
    for name in ("Run", "Profile", "Compare"):
        assert steps[name].header.values["image"].endswith("digit.png")
        if name == "Compare":
            steps[name].header.values = {**steps[name].header.values, "b": "reference"}
        click(steps[name].header, "run")
        settle(session)
    assert len(steps["Run"].times.rows) == 4 and steps["Run"].card.image[:4] == b"\x89PNG"
    assert set(steps["Profile"].tables) == {"one", "two"}
    assert steps["Profile"].tables["one"].profile["layers"]
    assert "same answer" in steps["Compare"].notice.what
    click(steps["Evaluate"].form, "submit",
          values={"data": "digits", "task": "", "sides": "float,reference"})  # fmt: skip
    click(steps["Quantize"].form, "submit", values={"images": "digits", "data": "", "drop": "50"})
    (estimate,) = [item["bytes"] for item in steps["Deploy"].bundle.items]
    click(steps["Deploy"].bundle, "write")
    settle(session)
    assert [row["0"] for row in steps["Evaluate"].metrics.rows] == ["float", "reference"]
    assert len(steps["Quantize"].table.rows) == 2
    assert (folder / "two_app/app/app.cpp").is_file() and len(steps["Deploy"].bundle.items) > 4
    written = sum(item["bytes"] for item in steps["Deploy"].bundle.items)
    assert estimate == pytest.approx(written, rel=0.1)  # equal weights are written once
    states = states_of(session)
    assert {name: state for name, (state, _) in states.items()} == dict.fromkeys(names, "done")
    click(steps["Quantize"].form, "submit", values={"images": "none", "data": "", "drop": "x"})
    assert set(steps["Quantize"].form.errors) == {"images", "drop"}
    html = bench.static_html()
    assert "one" in html and "Quantize" in html
    bench.load(lw.shipped("digits.onnx"))
    assert [s["name"] for s in bench.stepper.steps][:3] == ["Model", "Check", "Target"]


def test_the_verb_profiles_and_quantizes(folder: Path, capsys: Any) -> None:
    words = ["pipeline", "two.json", "--image", "digit.png", "--backend", host_target()]
    assert main([*words, "--profile"]) == 0
    assert "slowest layer" in capsys.readouterr().out
    more = ["--quantize", "digits", "--data", "digits", "--max-drop", "20%", "-o", "small.lite"]
    assert main(["pipeline", "two.json", *more]) == 0
    said = capsys.readouterr().out
    assert "2 of 2 stages in int8: top-1" in said and "wrote small.lite" in said
    assert Pipeline.open("small.lite").run("digit.png")["answers"].keys() == {"one", "two"}
    assert main(["pipeline", "two.json", "--profile"]) == 2
    assert "--profile needs --image" in capsys.readouterr().err


def test_stages_are_a_pipeline_as_a_file_is() -> None:
    """A list of them ended in a TypeError of the path that it is not."""
    pipeline = lw.pipeline([{"model": lw.shipped("digits.onnx"), "name": "one"}])
    assert [part.name for part in pipeline.parts] == ["one"]
    with pytest.raises(UsageError):
        lw.pipeline([{"no": "stage"}])
