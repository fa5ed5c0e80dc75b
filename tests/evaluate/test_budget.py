"""`lite quantize --data --max-drop`: within the budget, or exit 1 with what would reach it."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import lite_workbench as lw
import numpy as np
import pytest
from lite_engine.errors import UsageError
from lite_engine.model_file import read_model
from lite_workbench.budget import split, too_few
from lite_workbench.cli import main
from lite_workbench.evaluate import Dataset, Sample, read_dataset

pytestmark = pytest.mark.cpu
MODEL = str(lw.shipped("digits.onnx"))


@pytest.fixture(scope="module")
def data(digits, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("budget") / "digits.npz"
    np.savez(path, images=digits[0][:300], labels=digits[1][:300])
    return path


def test_a_budget_that_is_kept(data, tmp_path, capsys):
    out = tmp_path / "q.lite"
    words = ["quantize", MODEL, "-o", str(out), "--data", str(data), "--method", "minmax"]
    assert main([*words, "--max-drop", "5%", "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    budget = found["budget"]
    assert budget["reached"] and budget["metric"] == "top-1" and budget["loss"] <= 0.05
    assert budget["samples"] == 240  # of 300; 48 calibrate, 12 check the outputs
    assert found["samples"] == 48 and found["guard"]["samples"] == 12
    assert found["guard"]["held_out"] and "top-1 against float on 240" in budget["sentence"]
    words = ["evaluate", MODEL, "--data", str(data), "--versions", f"float,{out}", "--json", "-"]
    assert main(words) == 0
    both = json.loads(capsys.readouterr().out)
    assert [s["precision"] for s in both["sides"]] == ["fp32", "int8"]
    assert "--data" in read_model(out).metadata["quantized_by"]


@pytest.mark.sweep
def test_a_budget_that_is_exceeded_says_what_keeps_it(tmp_path, capsys):
    """Labels are the float model's own answers to noise: integers can only lose."""
    noise = np.random.default_rng(4).integers(0, 256, (200, 32, 32)).astype(np.uint8)
    session = lw.open(MODEL)
    session.convert(targets=["x86"])
    answers = [int(session.run(image, backend="x86").text) for image in noise]
    np.savez(tmp_path / "noise.npz", images=noise, labels=np.array(answers))
    out = tmp_path / "q.lite"
    words = ["quantize", MODEL, "-o", str(out), "--data", str(tmp_path / "noise.npz"),
             "--method", "minmax", "--max-drop", "0%", "--float-budget", "0"]  # fmt: skip
    assert main(words) == 1 and not out.exists()
    err = capsys.readouterr().err
    assert "int8 loses" in err and "the budget is 0 points; with" in err
    assert err.count("\n") == 1 and "raise --max-drop" in err
    assert main([*words, "--force"]) == 1 and out.exists()  # written, and still short of it
    needed = re.search(r"--float-budget ([\d.]+)\)", err)[1]
    assert main([*words[:-1], needed]) == 0  # as the error says


def test_the_closing_lines_say_what_few_samples_show(digits, tmp_path, capsys):
    np.savez(tmp_path / "few.npz", images=digits[0][:30], labels=digits[1][:30])
    words = ["quantize", MODEL, "-o", str(tmp_path / "q.lite"), "--data",
             str(tmp_path / "few.npz"), "--method", "minmax", "--force"]  # fmt: skip
    main([*words, "--max-drop", "0.5%"])
    said = capsys.readouterr().out
    assert "one of 24 samples is 4.2 points of top-1: so few cannot show a loss of 0.5 points" in (
        said
    )
    assert too_few("top-1", 0.05, 24) == too_few("mAP", 0.005, 24) == ""


def test_the_closing_line_has_the_answers_that_stay(tmp_path, capsys):
    """Of lines of text, where no output is a class."""
    out = str(tmp_path / "q.lite")
    images = np.load(lw.shipped("ocr_held_back.npz"))["images"][:12]
    np.savez(tmp_path / "x.npz", images=images)
    words = ["quantize", str(lw.shipped("ocr.onnx")), "-o", out, "--method", "minmax",
             "--rounding", "sums", "--calibration", str(tmp_path / "x.npz")]  # fmt: skip
    assert main([*words, "--json", str(tmp_path / "q.json")]) == 0
    found = json.loads((tmp_path / "q.json").read_text())
    held = found["guard"]["samples"]
    line = f"and the same result on {100 * found['same_answers']:.3g} % of {held} samples"
    assert line in capsys.readouterr().out and found["guard"]["held_out"]


def test_samples_that_calibrate_do_not_judge(digit_folders, tmp_path):
    whole = read_dataset(digit_folders / "classes")
    calibrating, judging = split(whole, None)
    names = {s.name for s in calibrating.samples}, {s.name for s in judging.samples}
    assert len(names[0]) == 20 and len(names[1]) == 80 and not names[0] & names[1]
    none, rest = split(whole, digit_folders / "classes" / "3")
    assert none is None and {s.label for s in rest.samples} == {0, 1, 2, 4, 5, 6, 7, 8, 9}
    with pytest.raises(UsageError, match="every sample of --data is among the calibration"):
        split(whole, digit_folders)
    with pytest.raises(UsageError, match="at least 2 samples"):
        split(Dataset("d", "classification", [Sample("a", "a.png", 1)]), None)


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ("--max-drop 1%", "--max-drop needs labeled data"),
        ("--data nowhere --max-drop x%", "not a loss"),
        ("--data nowhere", "no such file or folder"),
        ("--weights-only int8 --data x", "leave out --data"),
    ],
)
def test_wrong_usage(words, what, capsys):
    assert main(["quantize", MODEL, "-o", "q.lite", *words.split()]) == 2
    assert what in capsys.readouterr().err


def test_too_few_samples_to_hold_any_out_is_said(digits, tmp_path, capsys):
    np.savez(tmp_path / "x.npz", images=digits[0][:3])
    out = str(tmp_path / "q.lite")
    assert main(["quantize", MODEL, "-o", out, "--calibration", str(tmp_path / "x.npz")]) == 0
    said = capsys.readouterr().out
    assert "note: too few samples to hold any out" in said and "top-1 class on" in said


@pytest.mark.models
@pytest.mark.sweep
def test_plates_within_five_points(models_dir, tmp_path, capsys):
    folder = models_dir / "lprnet_plate_ocr"
    words = ["quantize", folder / "DERIVED_lprnet.onnx", "-o", tmp_path / "q.lite",
             "--data", folder / "plates_labels.tsv", "--images", folder / "plates",
             "--labels", folder / "chars.txt", "--max-drop", "5%",
             "--preprocess", "mean=127.5,std=128,bgr,size=24x94"]  # fmt: skip
    assert main([str(w) for w in words]) == 0
    capsys.readouterr()
    both = ["evaluate", words[1], "--versions", f"float,{tmp_path / 'q.lite'}", *words[4:10],
            *words[-2:], "--json", "-"]  # fmt: skip
    assert main([str(w) for w in both]) == 0
    sides = json.loads(capsys.readouterr().out)["sides"]
    exact, errors = ([s["metrics"][i]["value"] for s in sides] for i in (0, 1))
    assert exact[0] == 0.93 and exact[1] >= 0.88  # as the manifest says; and the budget
    assert max(errors) < 0.04


def reaches_or_says_why(words: list[object], drop: float, out: Path, capsys) -> None:
    """Within the budget by an evaluation of its own, or exit code 1 and one line with the loss."""
    code = main([*map(str, words), "--max-drop", f"{100 * drop}%", "--json", "-"])
    said = capsys.readouterr()
    if code == 0:
        budget = json.loads(said.out)["budget"]
        assert budget["reached"] and budget["loss"] <= drop and out.exists()
    else:
        assert code == 1 and not out.exists() and said.err.count("\n") == 1
        assert "int8 loses" in said.err and "the budget is" in said.err


@pytest.mark.slow
@pytest.mark.parametrize("drop", [0.5, 0.0])
def test_the_line_recognizer_reaches_it_or_says_why(tmp_path, capsys, drop):
    out = tmp_path / "q.lite"
    words = ["quantize", lw.shipped("ocr.onnx"), "-o", out, "--method", "minmax", "--limit", "15",
             "--data", lw.shipped("ocr_held_back.npz")]  # fmt: skip
    reaches_or_says_why(words, drop, out, capsys)


@pytest.mark.models
@pytest.mark.slow
def test_mobilenet_reaches_it_or_says_why(models_dir, tmp_path, capsys):
    labels = models_dir / "labels" / "imagenet_1001_labels.txt"
    names = labels.read_text().splitlines()
    for name, file in (("Egyptian cat", "tabby_cat.jpg"), ("cheeseburger", "burger.jpg"),
                       ("military uniform", "grace_hopper.bmp")):  # fmt: skip
        assert name in names
        (tmp_path / "data" / name).mkdir(parents=True)
        shutil.copy(models_dir / "images" / file, tmp_path / "data" / name)
    out = tmp_path / "q.lite"
    words = ["quantize", models_dir / "tflite" / "mobilenet_v1_0.25_224_float.tflite", "-o", out,
             "--data", tmp_path / "data", "--labels", labels, "--preprocess", "pm1",
             "--calibration", models_dir / "images" / "calib_kodak_small",
             "--method", "minmax"]  # fmt: skip
    reaches_or_says_why(words, 0.5, out, capsys)
