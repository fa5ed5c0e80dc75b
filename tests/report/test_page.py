"""The report: one file, no network, small, complete; hostile names stay text."""

from __future__ import annotations

import json
import math
import re
from unittest.mock import Mock

import pytest

pytest.importorskip("anywidget", reason="the report draws with the widgets: pip install .[lab]")

import numpy as np
from lite_engine import optimize
from lite_engine.runtime import host_target
from lite_widgets import DifferencePane, LayerTable, columns
from lite_workbench.cli import main
from lite_workbench.commands.report import quantized
from lite_workbench.report import Section, page, write_report
from lite_workbench.report.page import answer
from lite_workbench.session import Session
from lite_workbench.views import number

from tests.report.data import data_of
from tests.small_models import classifier


@pytest.fixture
def model(tmp_path):
    """A `.lite` file of a small classifier."""
    path = tmp_path / "small.lite"
    optimize(classifier(), targets=[host_target()]).save(path)
    return path


@pytest.mark.cpu
def test_the_command_writes_one_file(model, tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("LITE_CACHE_DIR", str(tmp_path / "cache"))
    out = tmp_path / "out.html"
    assert main(["report", str(model), "-o", str(out), "--runs", "3"]) == 0
    text = out.read_text("utf-8")
    assert "wrote" in capsys.readouterr().out
    assert len(text) < 2_000_000
    for section in ("Model", "Conversion", "Where the time goes", "agree?",
                    "Environment"):  # fmt: skip
        assert section in text
    markup = re.sub(r"<script.*?</script>", "", text, flags=re.S)
    assert not re.search(r'(?:src|href)="(?!#|data:)', markup)  # nothing is fetched
    assert sorted(tmp_path.glob(".*.part")) == []
    names = {m["module"] for m in data_of(text)["mounts"]}
    assert {"layer_table", "latency_chart", "graph_view", "error_strip", "memory_map"} <= names


def test_labels_of_the_samples_judge_the_versions(tmp_path) -> None:
    """Where there are some: a fifth of the samples calibrates, the others judge."""
    images = np.zeros((60, 8, 8), np.uint8)
    np.savez(tmp_path / "labeled.npz", images=images, labels=np.arange(60) % 10)
    np.savez(tmp_path / "plain.npz", images=images)
    for name, calibrating, judging in (
        ("labeled", {"limit": 12}, {"data": str(tmp_path / "labeled.npz")}),
        ("plain", {}, {}),
    ):
        session = Mock()
        quantized(session, str(tmp_path / f"{name}.npz"))
        session.quantize.assert_called_once_with(str(tmp_path / f"{name}.npz"), **calibrating)
        session.explore.assert_called_once_with(**judging)


def test_numbers_that_json_has_not_are_null() -> None:
    """A layer that overflowed: the page's data stay readable."""
    row = {"name": "exp", "rel_l2": math.inf, "worst_candidate": math.nan}
    pane = answer(DifferencePane(), {"exp": {"layer": row}})
    text = page("t", "", [Section("a", "A", "", [pane])])
    assert {"name": "exp", "rel_l2": None, "worst_candidate": None} in data_of(text)["values"]


def test_equal_data_are_written_once() -> None:
    rows = [{"name": f"l{i}", "op": "Conv", "median_ms": 1.0} for i in range(50)]
    tables = [LayerTable(profile={"layers": rows}) for _ in range(4)]
    one = page("t", "", [Section("a", "A", "", tables[:1])])
    four = page("t", "", [Section("a", "A", "", [columns(*tables[:2]), *tables[2:]])])
    assert len(four) - len(one) < 3_000


def test_names_cannot_leave_their_place() -> None:
    evil = "</script><script>alert(1)</script><!--"
    rows = [{"name": evil, "op": "Conv", "median_ms": 1.0}]
    text = page(evil, evil, [Section("a", evil, evil, [LayerTable(profile={"layers": rows})])])
    assert "<script>alert" not in text
    assert data_of(text)["values"]


@pytest.mark.cpu
def test_a_file_that_cannot_be_written(model, tmp_path, capsys) -> None:
    (tmp_path / "file").write_text("")
    assert main(["report", str(model), "-o", str(tmp_path / "file" / "x.html"), "--runs", "1"]) == 1
    assert "cannot be written" in capsys.readouterr().err


@pytest.mark.cpu
@pytest.mark.arm
def test_emulated_profiles_count_instructions(tmp_path) -> None:
    session = Session(optimize(classifier(), targets="arm").save(tmp_path / "arm.lite"))
    session.set_input()
    made = session.profile("arm", runs=1)
    text = write_report([session], tmp_path / "arm.html").read_text("utf-8")
    assert f"{number(made.instructions['run'])} instructions per run" in text
    assert '"instructions":' in json.dumps(data_of(text))


@pytest.mark.cpu
def test_two_sessions_in_one_report(model, tmp_path) -> None:
    sessions = [Session(model), Session(model)]
    for session in sessions:
        session.set_input()
        session.profile(host_target(), runs=2)
    text = write_report(sessions, tmp_path / "two.html").read_text("utf-8")
    assert len(re.findall(r'<section id="([^"]+)"', text)) == len(
        set(re.findall(r'<section id="([^"]+)"', text))
    )
