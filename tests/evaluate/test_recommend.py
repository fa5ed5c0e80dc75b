"""`lite recommend`: the fastest candidate within the budgets, and why the others are not it."""

from __future__ import annotations

import errno
import json
import subprocess
from pathlib import Path

import lite_workbench as lw
import numpy as np
import pytest
from lite_engine import Predictor
from lite_engine._native import runner_path
from lite_engine.devices import add_entry
from lite_engine.errors import LiteError, UsageError
from lite_engine.model_file import read_model
from lite_workbench import recommend_versions
from lite_workbench.budget import split
from lite_workbench.cli import main
from lite_workbench.commands._base import drop
from lite_workbench.evaluate import Dataset, Drop, read_dataset
from lite_workbench.evaluate.summary import _change
from lite_workbench.evaluate.tasks._base import Outcome
from lite_workbench.evaluate.tasks.image import ImageOutput
from lite_workbench.recommend import Candidate, Recommendation, _judge, recommend
from lite_workbench.sweep import Cell, Choice
from PIL import Image

from tests.report.data import data_of

pytestmark = pytest.mark.cpu
MODEL = str(lw.shipped("digits.onnx"))


@pytest.fixture(scope="module")
def data(digits, tmp_path_factory):
    path = tmp_path_factory.mktemp("recommend") / "digits.npz"
    np.savez(path, images=digits[0][:60], labels=digits[1][:60])
    return path


VERSIONS = {"fp32", "fp16", "bf16", "int8 weights", "int4 weights", "int8 auto", "int8 minmax",
            "int8 kl", "int8 mse"}  # fmt: skip


@pytest.fixture
def unpruned(monkeypatch):
    """Pruning takes its time."""
    monkeypatch.setattr(recommend_versions, "PRUNED", {})


def test_the_chosen_version_keeps_the_budgets(data, tmp_path, capsys, unpruned):
    out = tmp_path / "best.lite"
    words = ["recommend", MODEL, "--data", str(data), "--backends", "x86", "-o", str(out),
             "--resume", str(tmp_path / "kept")]  # fmt: skip
    page = tmp_path / "evidence.html"
    assert main([*words, "--max-drop", "5%", "--json", "-", "--report", str(page)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["samples"] == 48 and found["metric"] == "top-1"
    kept = [c for c in found["candidates"] if not c["why"]]
    assert {c["version"] for c in found["candidates"]} >= VERSIONS
    latencies = [c["cell"]["latency_ms"] for c in kept]
    assert latencies == sorted(latencies) and all(c["drop"] <= 0.05 for c in kept)
    evidence = read_model(out).metadata["evidence"]
    assert evidence["samples"] == 48 and evidence["latency_ms"] == latencies[0]
    assert evidence["low"] <= evidence["value"] <= evidence["high"]
    assert len(evidence["rejected"]) == len(found["candidates"]) - len(kept)
    shown = page.read_text()
    held = json.dumps(data_of(shown))
    assert all(f'"{c["version"]}"' in held for c in found["candidates"])
    assert "Recommendation" in shown and " … " in shown  # the metric with its interval

    assert main([*words, "--max-drop", "5%", "--json", "-"]) == 0  # nothing is measured again
    assert json.loads(capsys.readouterr().out)["candidates"] == found["candidates"]
    assert main([*words, "--max-drop", "5%", "--max-mb", "0.01"]) == 1
    said = capsys.readouterr().out
    assert "larger than 0.01 MB" in said and "no version is within the budgets" in said
    assert main([*words, "--max-drop", "6%"]) == 2
    assert (
        "belongs to another model, other budgets, other backends or other data"
        in capsys.readouterr().err
    )


def test_the_written_file_runs_on_the_backend_that_it_is_for(data, tmp_path, capsys, unpruned):
    """lite_run runs it, and the size that was judged is that of the file, evidence included: one
    byte less, and it is too large."""
    out, kept = tmp_path / "best.lite", str(tmp_path / "kept")
    words = ["recommend", MODEL, "--data", str(data), "--backends", "x86", "--max-drop", "5%",
             "--try", "weights", "--resume", kept, "-o", str(out), "--json", "-"]  # fmt: skip
    assert main(words) == 0
    found = json.loads(capsys.readouterr().out)
    best, size = found["candidates"][0], out.stat().st_size
    assert best["file_bytes"] == size and read_model(out).targets == ["x86"]
    np.save(tmp_path / "x.npy", np.load(data)["images"][:1, None].astype("f") / 255)
    run = [runner_path(), out, "--input", f"image={tmp_path / 'x.npy'}", "--output", tmp_path]
    done = subprocess.run(run, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    wanted = Predictor(MODEL, "reference").run(image=np.load(tmp_path / "x.npy"))["probability"]
    np.testing.assert_allclose(np.load(tmp_path / "probability.npy"), wanted, atol=0.05)

    main([*words, "--max-mb", repr((size - 1) / 1e6)])
    found = json.loads(capsys.readouterr().out)
    again = next(c for c in found["candidates"] if c["version"] == best["version"])
    assert again["why"].startswith("larger than")
    if found["file"]:
        assert Path(found["file"]).stat().st_size < size


def test_an_interrupted_search_continues(digits, tmp_path, monkeypatch, unpruned):
    monkeypatch.setattr(recommend_versions, "METHODS", ("minmax",))
    session = lw.open(MODEL)
    session.convert(targets=["x86"])
    model, data = session.model, read_dataset((digits[0][:20], digits[1][:20]))

    def stop(done, total):
        if done == 4:
            raise KeyboardInterrupt

    given = {"max_drop": 1.0, "backends": ["x86"], "resume": tmp_path}
    with pytest.raises(KeyboardInterrupt):
        recommend(model, data, progress=stop, **given)
    before = {p.name: p.read_bytes() for p in tmp_path.glob("*.json")}
    assert len(before) == 4
    made = recommend(model, data, **given)
    assert {c.version for c in made.candidates} == {*VERSIONS, "int8 minmax"} - {
        "int8 auto", "int8 kl", "int8 mse"}  # fmt: skip
    assert all((tmp_path / name).read_bytes() == content for name, content in before.items())


@pytest.mark.sweep
def test_layers_in_float_are_candidates_where_int8_loses_too_much(tmp_path, monkeypatch, unpruned):
    """Labels are the float model's own answers to noise: integers can only lose."""
    monkeypatch.setattr(recommend_versions, "METHODS", ("minmax",))
    noise = np.random.default_rng(4).integers(0, 256, (200, 32, 32)).astype(np.uint8)
    session = lw.open(MODEL)
    session.convert(targets=["x86"])
    labels = np.array([int(session.run(image, backend="x86").text) for image in noise])
    made = session.recommend((noise, labels), 0.0, backends=["x86"])
    by_name = {c.version: c for c in made.candidates}
    assert by_name["int8 minmax"].why == "loses more than 0 points"
    assert by_name["int8 minmax mixed"].drop < by_name["int8 minmax"].drop
    assert made.chosen is not None and made.chosen.drop == 0


def test_it_measures_on_a_device(digits, monkeypatch, unpruned):
    monkeypatch.setattr(recommend_versions, "METHODS", ())
    add_entry("bench", "local")  # lite_run on this machine
    session = lw.open(MODEL)
    session.convert(targets=["x86"])
    data = (digits[0][:10], digits[1][:10])
    made = session.recommend(data, 1.0, device="bench")
    assert {c.cell.choice.device for c in made.candidates} == {"bench"}
    assert made.chosen is not None and made.chosen.cell.latency_ms > 0
    with pytest.raises(LiteError, match="times under emulation are not meaningful"):
        session.recommend(data, 1.0, device="emulated")


@pytest.mark.sweep
def test_pruned_versions_are_candidates(digits, tmp_path, monkeypatch):
    """Within the budget by an evaluation of their own; fewer channels are a smaller file."""
    monkeypatch.setattr(recommend_versions, "METHODS", ())
    session = lw.open(MODEL)
    session.convert(targets=["x86"])
    data = read_dataset((digits[0][:60], digits[1][:60]))
    made = recommend(session.model, data, max_drop=0.2, backends=["x86"], resume=tmp_path)
    by_name = {c.version: c for c in made.candidates}
    assert {"fewer channels", "zeros in weights"} <= set(by_name), made.notes
    small = by_name["fewer channels"]
    assert small.file_bytes < by_name["fp32"].file_bytes and small.drop <= 0.2
    other = lw.open(tmp_path / "fewer-channels.lite")
    judged = other.evaluate(split(data, None)[1])
    assert judged.sides[0].main.value == small.cell.value
    zeros = read_model(tmp_path / "zeros-in-weights.lite").graph.constants()
    shares = [np.mean(v.const == 0) for v in zeros if v.const is not None and v.const.ndim > 1]
    assert max(shares) >= 0.7


def test_what_exceeds_a_budget_is_told():
    best = Cell(Choice("x86", "fp32", 1), "measured", latency_ms=2.0, value=0.9)
    worse = Cell(Choice("x86", "int8", 1), "measured", latency_ms=1.0, value=0.8)
    made = Candidate(worse, "int8", 2_000_000, 0.0)
    _judge(made, best, max_drop=0.05, max_ms=0.5, max_mb=1)
    assert made.drop == pytest.approx(0.1)
    assert made.why == "loses more than 5 points, slower than 0.5 ms, larger than 1 MB"
    error = Cell(Choice("x86", "fp32", 1), "measured", value=0.1, higher_is_better=False)
    more = Cell(Choice("x86", "int8", 1), "measured", value=0.12, higher_is_better=False)
    made = Candidate(more, "int8", 1, 0.0)
    _judge(made, error, max_drop=0.05, max_ms=None, max_mb=None)
    assert made.drop == pytest.approx(0.02) and made.why == ""


@pytest.mark.parametrize(
    ("metric", "float_value", "other", "figures", "lost", "head", "limit"),
    [
        ("mIoU", 0.872, 0.869, "86.9 % (86.8 … 87.0)", "-0.3 points", "drop, points", "0.1 points"),
        ("PSNR", 37.221, 37.019, "37.02 dB (37.02 … 37.02)", "-0.20 dB", "drop, dB", "0.1 dB"),
        ("SSIM", 0.9312, 0.9301, "0.9301 (0.9291 … 0.9311)", "-0.0011", "drop", "0.001"),
    ],
)  # fmt: skip
def test_figures_have_the_unit_of_their_metric(
    metric, float_value, other, figures, lost, head, limit
):
    """Decibels are no percentage, and the index of similarity has no unit."""
    allowed = 0.1 if metric == "PSNR" else 0.001
    best = Cell(Choice("x86", "fp32", 1), "measured", latency_ms=2.0, metric=metric,
                value=float_value)  # fmt: skip
    cell = Cell(Choice("x86", "int8", 1), "measured", latency_ms=1.0, metric=metric, value=other,
                low=other - 0.001, high=other + 0.001)  # fmt: skip
    candidate = Candidate(cell, "int8", 1_000_000, 0.0)
    _judge(candidate, best, allowed, None, None)
    assert candidate.why == f"loses more than {limit}"
    candidate.why = ""
    made = Recommendation("m", metric, float_value, 9, allowed, None, None, [candidate])
    heads, (row,) = made.table()
    assert heads[6] == head and row[5] == figures and row[6] == lost.split(" ")[0].lstrip("-")
    assert f"{metric} {figures.split(' (')[0]} ({lost})" in made.sentence


@pytest.mark.parametrize(
    ("text", "task", "metric", "wanted"),
    [
        ("0.5%", "classification", "", 0.005), ("0.5", "detection", "", 0.005),
        ("0.5dB", "image", "", 0.5), ("0.5 db", "image", "psnr", 0.5), ("0.5", "image", "", 0.5),
        ("0.01", "image", "ssim", 0.01), ("0.5%", "image", "", None), ("1%", "image", "SSIM", None),
        ("1dB", "text", "CER", None), ("1dB", "image", "SSIM", None),
    ],
)  # fmt: skip
def test_a_drop_is_in_the_unit_of_the_metric(text, task, metric, wanted):
    data = Dataset("made", task, [], metric=metric)
    if wanted is not None:
        assert drop(text).of(data) == wanted
    else:
        with pytest.raises(UsageError, match=r"^made: .* another unit; give a number like 0\.5"):
            drop(text).of(data)


def test_what_nobody_said_is_hundredths_of_similarity():
    for metric, wanted in (("psnr", 0.5), ("ssim", 0.005), ("", 0.5)):
        assert Drop(0.5, hundredths=True).of(Dataset("made", "image", [], metric=metric)) == wanted


def test_images_that_are_better_are_so_in_the_metric():
    """Decibels rose where the similarity fell: each metric counts its own."""
    own = ImageOutput(Dataset("made", "image", []), [], None)
    before = [Outcome("a", 0.9, 0.9, None, (30.0, 0.9))] * 5
    after = [Outcome("b", 0.8, 0.8, None, (31.0, 0.8))] * 5
    sides = [own.measures([None] * 5, outcomes) for outcomes in (before, after)]
    for index, (better, worse) in enumerate(((5, 0), (0, 5))):
        pair = tuple(side[index] for side in sides)
        values = tuple(np.array([m.value]) for m in pair)
        change = _change(("a", "b"), pair, values, before, after)
        assert (change.improved, change.worsened) == (better, worse)


def test_images_are_judged_in_decibels_first():
    """What a drop without a named metric counts on."""
    own = ImageOutput(Dataset("made", "image", []), [], None)
    outcome = Outcome("", None, 0.9, None, (30.0, 0.9))
    assert [m.name for m in own.measures([None], [outcome])] == ["PSNR", "SSIM"]


def test_a_percentage_of_decibels_is_refused(tmp_path, capsys):
    for name in ("input", "target"):
        (tmp_path / name).mkdir()
        Image.new("RGB", (4, 4)).save(tmp_path / name / "a.png")
    assert main(["recommend", MODEL, "--data", str(tmp_path), "--max-drop", "0.5%"]) == 2
    err = capsys.readouterr().err
    assert (
        "0.5% does not apply to PSNR" in err
        and err.endswith("like 0.5dB\n")
        and err.count("\n") == 1
    )


def test_a_session_remembers_it(digits, monkeypatch, unpruned):
    monkeypatch.setattr(recommend_versions, "METHODS", ("minmax",))
    session = lw.open(MODEL)
    session.convert(targets=["x86"])
    made = session.recommend((digits[0][:20], digits[1][:20]), 1.0, backends=["x86"])
    assert made.chosen is made.candidates[0] and "→" in made._repr_html_()
    assert session.code[-1] == "recommendation = session.recommend(data, 1.0, backends=['x86'])"


def test_a_float_version_that_cannot_be_made_is_told(data, tmp_path, capsys, monkeypatch):
    def refused(self, name, precision, make):
        raise LiteError("no such layer", where="kept")

    monkeypatch.setattr(recommend_versions.Kept, "version", refused)
    words = ["recommend", MODEL, "--data", str(data), "--backends", "x86", "--max-drop", "5%",
             "--try", "weights", "-o", str(tmp_path / "best.lite")]  # fmt: skip
    assert main(words) == 1
    said = capsys.readouterr().err
    assert "fp32: kept: no such layer" in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("version", ["fp16", "int8-weights", "int8-minmax", "fewer-channels"])
def test_a_full_disk_ends_the_search(data, tmp_path, capsys, monkeypatch, version):
    """It would go on with fewer versions, as if the others could not be made."""
    monkeypatch.setattr(recommend_versions, "METHODS", ("minmax",))
    monkeypatch.setattr(recommend_versions._Search, "pruned", lambda search, how: search.model)
    rename = Path.replace

    def full(part, target):
        if Path(target).name == f"{version}.lite":
            raise OSError(errno.ENOSPC, "No space left on device")
        return rename(part, target)

    kept = tmp_path / "kept"
    words = ["recommend", MODEL, "--data", str(data), "--limit", "10", "--backends", "x86",
             "--max-drop", "100%", "--resume", str(kept), "--json", "-"]  # fmt: skip
    monkeypatch.setattr(Path, "replace", full)
    assert main(words) == 1
    out, said = capsys.readouterr()
    file = kept / f"{version}.lite"
    assert said == f"error: {file}: cannot be written (No space left on device)\n"
    assert json.loads(out)["error"]["kind"] == "write" and not file.exists()
    monkeypatch.undo()
    monkeypatch.setattr(recommend_versions, "METHODS", ())
    monkeypatch.setattr(recommend_versions, "PRUNED", {})
    assert main(words) == 0  # with what is there
