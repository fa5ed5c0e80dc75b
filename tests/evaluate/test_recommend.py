"""`lite recommend`: the fastest candidate within the budgets, and why the others are not it."""

from __future__ import annotations

import json

import lite_workbench as lw
import numpy as np
import pytest
from lite_engine.model_file import read_model
from lite_workbench.cli import main
from lite_workbench.recommend import Candidate, _judge
from lite_workbench.sweep import Cell, Choice

pytestmark = pytest.mark.cpu
MODEL = str(lw.shipped("digits.onnx"))


@pytest.fixture(scope="module")
def data(digits, tmp_path_factory):
    path = tmp_path_factory.mktemp("recommend") / "digits.npz"
    np.savez(path, images=digits[0][:100], labels=digits[1][:100])
    return path


def test_the_chosen_version_keeps_the_budgets(data, tmp_path, capsys):
    out = tmp_path / "best.lite"
    words = ["recommend", MODEL, "--data", str(data), "--backends", "x86", "-o", str(out)]
    page = tmp_path / "evidence.html"
    assert main([*words, "--max-drop", "5%", "--json", "-", "--report", str(page)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["samples"] == 80 and found["metric"] == "top-1"
    kept = [c for c in found["candidates"] if not c["why"]]
    assert {c["version"] for c in found["candidates"]} == {"fp32", "fp16", "bf16", "int8"}
    latencies = [c["cell"]["latency_ms"] for c in kept]
    assert latencies == sorted(latencies) and all(c["drop"] <= 0.05 for c in kept)
    assert read_model(out).metadata["evidence"]["samples"] == 80
    shown = page.read_text()
    assert all(f'"{c["version"]}"' in shown for c in found["candidates"])
    assert "Recommendation" in shown and " … " in shown  # the metric with its interval
    assert main([*words, "--max-drop", "5%", "--max-mb", "0.01"]) == 1
    said = capsys.readouterr().out
    assert "larger than 0.01 MB" in said and "no version is within the budgets" in said


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


def test_a_session_remembers_it(digits):
    session = lw.open(MODEL)
    session.convert(targets=["x86"])
    made = session.recommend((digits[0][:20], digits[1][:20]), 1.0, backends=["x86"])
    assert made.chosen is made.candidates[0] and "→" in made._repr_html_()
    assert session.code[-1] == "recommendation = session.recommend(data, 1.0, backends=['x86'])"
