"""The Quantize step without a browser: samples, versions, and what measures them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ipywidgets", reason="pip install 'lite-workbench[lab]'")

import lite_workbench as lw
import numpy as np
from lite_engine import Predictor, optimize
from lite_engine.runtime.shares import Share
from lite_workbench import quantizing
from lite_workbench.steps import quantize as steps_quantize

from tests.small_models import classifier
from tests.workbench.sessions import click, settle
from tests.workbench.test_odd_models import relu, tiny

pytestmark = pytest.mark.cpu


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


def test_a_version_that_code_made_is_not_called_missing(tmp_path: Path, monkeypatch: Any) -> None:
    """`session.quantize` without `explore`: the tab has its dB, and so has the page."""
    monkeypatch.chdir(tmp_path)
    image = np.random.default_rng(2).random((6, 3, 20, 20), np.float32)
    np.savez("m_held.npz", image)
    made = lw.open(optimize(classifier()).save("m.lite"))
    bench = lw.Workbench(made, step="Quantize")
    status = bench.step("Quantize").trade.status
    assert status["title"] == "Not quantized yet"
    quantization = made.quantize("m_held.npz", force=True)
    status = lw.Workbench(made, step="Quantize").step("Quantize").trade.status
    assert status["title"] == "Quantized; other versions are not measured yet"
    decibels = f"{quantization.verdict.sqnr_db:.0f} dB"
    assert decibels in status["text"] and status["action"] == "start"


def test_versions_are_measured_on_the_chosen_backend(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("m_held.npz", np.random.default_rng(2).random((6, 3, 20, 20), np.float32))
    made = lw.open(optimize(classifier(), targets=["x86", "opencl"]).save("m.lite"))
    step = lw.Workbench(made, step="Quantize").step("Quantize")
    assert [name for name, *_ in step.header.segments["options"]] == ["x86", "opencl"]
    step.header.values = {**step.header.values, "backend": "reference"}
    click(step.header, "run")
    settle(made)
    assert made.code[-1] == "session.explore('reference')" and step.trade.points


def test_a_version_says_which_layers_ran_elsewhere(tmp_path: Path, monkeypatch: Any) -> None:
    """Here every other layer: int8 has no kernel there. Versions that ran whole say nothing."""
    monkeypatch.chdir(tmp_path)
    made = lw.open(optimize(classifier(), targets=["x86"]).save("m.lite"))
    made.quantize(np.random.default_rng(2).random((6, 3, 20, 20), np.float32))
    made.explore("x86")
    assert {p["ran"] for p in made.quantization.points} == {""}
    split = {"opencl": Share(3, 0.75, 0.5), "cpu": Share(1, 0.25, 0.5)}
    monkeypatch.setattr(Predictor, "shares", lambda *_: split)
    made.explore("x86")
    assert {p["ran"] for p in made.quantization.points} == {
        "1 of 5 layers ran on the CPU (50 % of the time), 3 on OpenCL, 1 needs no computation"
    }


def test_the_method_that_compares_others_can_be_chosen(tmp_path: Path, monkeypatch: Any) -> None:
    """The versions are rounded as it found best; the clipping on show is the one that it chose."""
    monkeypatch.chdir(tmp_path)
    np.savez("m_held.npz", np.random.default_rng(2).random((6, 3, 20, 20), np.float32))
    made = lw.open(optimize(classifier()).save("m.lite"))
    step = lw.Workbench(made, step="Quantize").step("Quantize")
    step.header.values = {**step.header.values, "method": "auto"}
    click(step.header, "run")
    settle(made)
    found, rounded = made.quantization.made, []
    assert step.header.values["method"] == "auto" and set(found.tried) > {"mse", "kl"}
    assert step.range.layer["method"] == found.finished().ranges.method != "auto"

    def spy(weight: Any, *rest: Any, **named: Any) -> Any:
        rounded.append(weight)
        return round_with(weight, *rest, **named)

    round_with, found.round_with = found.round_with, spy
    made.explore()
    assert rounded


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


LISTS = lw.shipped("listops_held_back.npz")


def as_slow_as_large(monkeypatch: Any) -> None:
    """A version takes as many ms as its weights have kB, whatever else this machine does."""

    def ms(predictor: Any, _feeds: Any) -> float:
        return sum(v.const.nbytes for v in predictor.model.graph.constants()) / 1e3

    monkeypatch.setattr(quantizing, "_ms", ms)


def test_the_budget_decides_how_many_layers_go_back_to_float(monkeypatch: Any) -> None:
    """A model of tokens that loses much in int8: the less may be lost, the more layers are float,
    and what a version has lost is what its file loses on the same labels."""
    as_slow_as_large(monkeypatch)
    made = lw.open(lw.shipped("listops.onnx"))
    made.convert(targets=["x86"])
    made.threads = 1
    made.quantize(LISTS, method="minmax", limit=40, equalize=False, force=True)
    made.explore(data=LISTS, limit=200)
    step = lw.Workbench(made, step="Quantize").step("Quantize")
    trade = step.trade
    shown = step.header.values["method"], step.header.values["judged"]
    assert shown == ("minmax", "labels"), "the choices are those of the versions that are shown"
    before = made.quantization
    assert trade.metric == "top-1" and before.judged == 200
    kept = []
    for budget in (40.0, 12.0, 1.0):
        trade.budget = budget
        point = trade.points[trade.best]
        assert point["accuracy"] >= trade.float_["accuracy"] - budget
        assert step.layers.kept == point["kept"]
        kept.append(len(point["kept"]))
    assert kept == sorted(set(kept)) and kept[0] == 0, "more float for a smaller budget"
    click(step.header, "keep")
    settle(made)
    assert "minmax" in made.code[-1] and "equalize=False" in made.code[-1], "as it was measured"
    assert made.quantization.kept == trade.points[4]["kept"] and made.version == "mixed"
    with np.load(LISTS) as file:
        seen = before.made.calibration.samples + len(before.made.held)
        tokens, labels = file["tokens"][seen:], file["labels"][seen:]
    chosen = [i * len(tokens) // 200 for i in range(200)]
    predictor = Predictor(made.versions["float"], threads=1)
    right = [
        predictor.run({"tokens": tokens[i][None]})["answer"].argmax() == labels[i] for i in chosen
    ]
    assert trade.float_["accuracy"] == pytest.approx(100 * np.mean(right))


def test_labels_judge_where_the_samples_have_some(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    made = lw.open(lw.shipped("listops.onnx"))
    made.convert(targets=["x86"])
    made.threads = 1
    monkeypatch.setattr(steps_quantize, "JUDGING", 60)
    step = lw.Workbench(made, step="Quantize").step("Quantize")
    judged = next(s for s in step.header.selects if s["name"] == "judged")
    assert [name for name, _ in judged["options"]] == ["float", "labels"]
    step.header.values = {**step.header.values, "judged": "labels"}
    click(step.header, "run")
    settle(made)
    assert step.trade.metric == "top-1" and 70 < step.trade.float_["accuracy"] < 100
    assert made.code[-1] == f"session.explore('x86', data={str(LISTS)!r}, limit=60)"


def test_what_calibrated_does_not_judge(tmp_path: Path) -> None:
    with np.load(LISTS) as file:
        np.savez(tmp_path / "few.npz", tokens=file["tokens"][:20], labels=file["labels"][:20])
    made = lw.open(lw.shipped("listops.onnx"))
    made.convert(targets=["x86"])
    made.quantize(tmp_path / "few.npz", method="minmax")
    with pytest.raises(lw.LiteError, match="all 20 samples were used for calibration"):
        made.explore(data=tmp_path / "few.npz")


def test_settings_that_were_changed_since_are_told_from_those_on_show(
    session: lw.Session, tmp_path: Path
) -> None:
    """ "Keep this version" is no answer to settings that it was not made with."""
    shutil.copy(lw.shipped("digits_held_back.npz"), tmp_path)
    step = lw.Workbench(session, step="Quantize").step("Quantize")

    def labels() -> list[tuple[str, bool]]:
        return [(one["label"], one["primary"]) for one in step.header.buttons]

    click(step.header, "run")
    settle(session)
    made = [("Run again", False), ("Keep this version", True)]
    assert labels() == made and step.header.note.startswith("mse · 24 samples")
    step.header.values = {**step.header.values, "method": "minmax"}
    assert labels() == [("Quantize with these settings", True), ("Keep this version", False)]
    assert step.header.note.startswith("mse · ")
    step.header.values = {**step.header.values, "method": "mse"}
    assert labels() == made
    # changed while it runs: what comes is of the settings that it was begun with
    click(step.header, "run")
    step.header.values = {**step.header.values, "method": "kl"}
    settle(session)
    assert step.header.values["method"] == "kl" and step.header.note.startswith("mse · ")
    assert labels()[0] == ("Quantize with these settings", True)


def test_a_model_without_anything_to_quantize_is_not_said_to_be_int8(
    tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("samples.npz", np.random.default_rng(2).random((6, 1, 4), np.float32))
    session = lw.open(tiny(tmp_path / "one.onnx", relu(), {"x": [1, 4]}, "y"))
    session.convert(targets=["x86"])
    step = lw.Workbench(session, step="Quantize").step("Quantize")
    click(step.header, "run")
    settle(session)
    assert [point["label"] for point in step.trade.points] == ["No layer runs in int8"]
    assert step.layers.status["title"] == "No layer runs in int8"
    assert "No layer runs in int8" in step.layers.static_html()
    assert "Accuracy against latency" in str(step.trade.static_svg())
