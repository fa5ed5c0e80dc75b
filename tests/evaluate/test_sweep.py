"""A sweep: every combination, the Pareto front, batches that are checked, and resuming."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import lite_workbench as lw
import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine.devices import add_entry
from lite_engine.errors import LiteError, ShapeError, UsageError
from lite_engine.ir import DType, Value
from lite_workbench.batches import check_rows, with_batch
from lite_workbench.cli import main
from lite_workbench.evaluate import read_dataset
from lite_workbench.sweep import Cell, Choice, Sweep, sweep
from lite_workbench.sweep.cells import choices, mark_front
from lite_workbench.sweep.group import _stop_if_hopeless

from tests.small_models import Builder, attention, classifier

pytestmark = pytest.mark.cpu


def cell(latency: float, rate: float, memory: int = 1, value: float | None = None) -> Cell:
    return Cell(Choice("x86", "fp32", 1), "measured", latency_ms=latency, throughput=rate,
                memory_bytes=memory, value=value)  # fmt: skip


def test_the_front_is_what_no_other_cell_beats():
    cells = [cell(1, 10), cell(2, 30), cell(3, 20), cell(2, 30, 2), cell(4, 5, 1, 0.9)]
    mark_front(cells)
    # by brute force over the definition; a cell without a metric has 0
    assert [c.front for c in cells] == [True, True, False, False, True]
    made = Sweep("m", cells, max_ms=1.5)
    assert made.fastest is cells[0] and made.best is cells[0]
    assert Sweep("m", cells).best.throughput == 30
    assert Sweep("m", cells, max_ms=0.5).best is None


@pytest.mark.parametrize(
    ("metric", "value", "wanted"),
    [("top-1", 0.872, "87.2 %"), ("PSNR", 37.221, "37.22 dB"), ("SSIM", 0.9312, "0.9312")],
)
def test_a_metric_has_its_own_unit(metric, value, wanted):
    made = cell(1, 1000, value=value)
    made.metric = metric
    assert made.accuracy == f"{metric} {wanted}"
    heads, (row,) = Sweep("m", [made]).table()
    assert row[heads.index(metric)] == wanted


def test_the_sweet_spot_of_each_goal():
    """By hand: latencies 1, 2, 3 ms; 10, 30, 20 samples/s."""
    cells = [cell(1, 10), cell(2, 30), cell(3, 20)]
    for given, wanted, said in (
        ({"min_rate": 15}, 1, "least latency with at least 15 samples/s: "),
        ({"min_rate": 5}, 0, "least latency with at least 5 samples/s: "),
        ({"min_rate": 15, "max_ms": 2.5}, 1, "at least 15 samples/s within 2.5 ms: "),
        ({"min_rate": 15, "max_ms": 1.5}, None, "no combination has 15 samples/s within 1.5 ms"),
        ({"min_rate": 99}, None, "no combination has 99 samples/s"),
        ({"min_rate": 99, "max_ms": 0.5}, None, "no combination runs within 0.5 ms"),
        ({"max_ms": 2.5}, 1, "highest throughput within 2.5 ms: "),
    ):
        made = Sweep("m", cells, **given)
        assert made.best is (None if wanted is None else cells[wanted]), given
        assert any(said in line for line in made.sentences), (given, made.sentences)
    assert "highest throughput: " in Sweep("m", cells, min_rate=99).sentences[-1]


@pytest.mark.parametrize(("better", "stops"), [(True, False), (False, True)])
def test_what_is_slow_but_more_accurate_is_not_hopeless(better, stops):
    """An error rate of 0.02 beside 0.1 is better, an accuracy is worse."""
    slow, fast = cell(9, 1, value=0.02), cell(1, 10, value=0.1)
    for one in (slow, fast):
        one.status, one.higher_is_better = "waiting", not better
    _stop_if_hopeless(slow, [fast])
    assert (slow.status == "stopped") is stops
    small = cell(9, 1, memory=1)
    small.status = "waiting"
    _stop_if_hopeless(small, [cell(1, 10, memory=2)])
    assert small.status == "waiting", "it needs less memory"


def test_every_combination_once():
    made = choices(["x86", "opencl"], ["fp32"], [1, 2], [1, 4], [1])
    assert len(made) == 6 and len(set(made)) == 6  # opencl has no threads of its own


@pytest.mark.parametrize("graph", [classifier, attention], ids=lambda g: g.__name__)
def test_a_fixed_batch_is_changed_and_gives_each_sample_its_own_result(graph):
    model = optimize(graph(), targets=["x86"])
    many = with_batch(model, 3)
    name = model.graph.inputs[0].name
    shape = model.graph.inputs[0].shape[1:]
    x = np.random.default_rng(1).standard_normal((3, *shape)).astype(np.float32)
    one, all_of_them = Predictor(model, "x86"), Predictor(many, "x86")
    check_rows(one, all_of_them, {name: x})
    (got,) = all_of_them.run({name: x}).values()
    want = np.concatenate([next(iter(one.run({name: row[None]}).values())) for row in x])
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    assert with_batch(model, 1) is model


def test_a_fixed_batch_is_measured_as_it_is_and_made_smaller():
    graph = classifier(batch=3)
    model = optimize(graph, targets=["x86"])
    made = sweep(model, backends=["x86"], rounds=1)
    assert [(c.choice.batch, c.status) for c in made.cells] == [(3, "measured")]
    made = sweep(model, backends=["x86"], batches=[1, 2, 6], rounds=1)
    assert [(c.choice.batch, c.status) for c in made.cells] == [
        (n, "measured") for n in (1, 2, 6)
    ], [c.why for c in made.cells]


@pytest.mark.parametrize(("first", "shape"), [(1, ()), ("N", ()), ("N", (4, 3))])
def test_inputs_without_the_batch_are_measured_whole(first, shape):
    """A factor, and a matrix beside an open batch."""
    b = Builder((first, 4), "beside")
    b.graph.inputs.append(k := Value("k", DType.F32, shape))
    model = optimize(b.done(b.add("MatMul" if shape else "Mul", b.x, k)), targets=["x86"])
    made = sweep(model, backends=["x86"], batches=[1, 2], rounds=1)
    assert [(c.choice.batch, c.status) for c in made.cells] == [(1, "measured"), (2, "measured")]


def test_a_graph_that_mixes_samples_is_refused():
    b = Builder((1, 4, 8), "mixing")
    total = b.add("CumSum", b.x, b.graph.constant(np.array(0)), name="sum")
    model = optimize(b.done(b.add("Sub", b.x, total, name="centered")), targets=["x86"])
    x = np.random.default_rng(1).standard_normal((2, 4, 8)).astype(np.float32)
    many = with_batch(model, 2)
    with pytest.raises(LiteError, match="mixes the samples of a batch"):
        check_rows(Predictor(model, "x86"), Predictor(many, "x86"), {"x": x})
    b = Builder((1, 4, 8), "centered")
    mean = b.add("ReduceMean", b.x, b.ints(0), name="mean", keepdims=1)
    model = optimize(b.done(b.add("Sub", b.x, mean, name="centered")), targets=["x86"])
    with pytest.raises(ShapeError, match=r"mean \(ReduceMean\).*keeps the shape"):
        with_batch(model, 2)
    flat = Builder((1, 4, 8), "flat")
    whole = optimize(flat.done(flat.add("Reshape", flat.x, flat.ints(32))), targets=["x86"])
    with pytest.raises(ShapeError):
        with_batch(whole, 2)


def test_a_session_sweeps_and_the_code_repeats_it(digits):
    session = lw.open(lw.shipped("digits.onnx"))
    session.convert(targets=["x86"])
    made = session.sweep(["x86"], threads=[1], batches=[1, 2], streams=[1, 2], rounds=2)
    assert {c.status for c in made.cells} <= {"measured", "stopped"} and len(made.cells) == 4
    assert all(c.latency_ms > 0 and c.throughput > 0 and c.memory_bytes > 4e5 for c in made.cells)
    assert made.front and session.sweeps == [made]
    assert (
        session.code[-1]
        == "sweep = session.sweep(backends=['x86'], batches=[1, 2], streams=[1, 2])"
    )
    assert "★" in made._repr_html_() and len(made.to_dataframe()) == 4
    assert len(made.figure().data) == 2


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({}, ""),
        ({"threads": [1, 2]}, "threads=[1, 2]"),
        ({"backends": "x86", "threads": 2}, "backends=['x86'], threads=[2]"),  # one, without a list
    ],
)
def test_a_session_sweeps_the_batch_of_the_model(given, code):
    session = lw.open(lw.shipped("digits.onnx"))
    session.convert(targets=["x86"])
    made = session.sweep(**given, rounds=1)
    assert {c.choice.batch for c in made.cells} == {1}, "as in the file"
    assert all(c.status in ("measured", "stopped") for c in made.cells)
    assert session.code[-1] == f"sweep = session.sweep({code})"


def test_accuracy_is_measured_once_for_each_precision(digits, tmp_path):
    model = optimize(lw.shipped("digits.onnx"), targets=["x86"])
    data = read_dataset((digits[0][:60], digits[1][:60]))
    made = sweep(model, backends=["x86"], precisions=["fp32", "bf16"], batches=[1, 2], data=data,
                 rounds=1)  # fmt: skip
    exact = [c for c in made.cells if c.choice.precision == "fp32"]
    assert len({c.value for c in exact}) == 1 and exact[0].metric == "top-1"
    assert exact[0].low <= exact[0].value <= exact[0].high
    with pytest.raises(UsageError, match="label 12"):
        sweep(model, data=read_dataset((digits[0][:1], np.array([12]))))


def test_finished_combinations_are_kept(tmp_path, capsys):
    path = str(optimize(classifier(), targets=["x86"]).save(tmp_path / "m.lite"))
    state = tmp_path / "state.json"
    words = ["sweep", path, "--backends", "x86", "--batch", "1,2", "--rounds", "1",
             "--resume", str(state), "--json", "-"]  # fmt: skip
    assert main(words) == 0
    first = json.loads(capsys.readouterr().out)["cells"]
    saved = json.loads(state.read_text())
    # As if it was interrupted before the second; a time that no measurement gives tells them apart.
    saved["cells"][0]["latency_ms"] = saved["cells"][1]["latency_ms"] = 1e9
    saved["cells"][1]["status"] = "waiting"
    state.write_text(json.dumps(saved))
    assert main(words) == 0
    again = json.loads(capsys.readouterr().out)["cells"]
    assert again[0] == {**first[0], "latency_ms": 1e9}
    assert again[1]["status"] == "measured" and again[1]["latency_ms"] < 1e9
    assert main([*words, "--threads", "2"]) == 2
    assert "belongs to another model" in capsys.readouterr().err
    state.write_text("{}")
    assert main(words) == 2 and "not a saved sweep" in capsys.readouterr().err


def test_a_full_disk_is_no_property_of_a_combination(tmp_path, capsys, monkeypatch):
    """Kept as failed it would never be measured."""
    add_entry("own-disk", "local")  # lite_run on this machine
    path = str(optimize(classifier(), targets=["x86"]).save(tmp_path / "m.lite"))
    rename = Path.replace

    def full(part, target):
        if Path(target).name == "program.lite":  # what the device is sent
            raise OSError(errno.ENOSPC, "No space left on device")
        return rename(part, target)

    words = ["sweep", path, "--backends", "x86", "--devices", "own-disk", "--rounds", "1",
             "--resume", str(tmp_path / "state.json"), "--json", "-"]  # fmt: skip
    monkeypatch.setattr(Path, "replace", full)
    assert main(words) == 1
    assert "program.lite: cannot be written (No space left on device)" in capsys.readouterr().err
    monkeypatch.undo()
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["cells"][0]["status"] == "measured"


def test_a_goal_that_nothing_reaches_and_what_cannot_run(tmp_path, capsys):
    path = str(optimize(classifier(), targets=["x86"]).save(tmp_path / "m.lite"))
    words = ["sweep", path, "--backends", "x86", "--rounds", "1"]
    assert main([*words, "--max-ms", "0"]) == 1
    assert "no combination runs within 0 ms" in capsys.readouterr().out
    assert main([*words, "--min-rate", "1e12"]) == 1
    assert "no combination has 1e+12 samples/s" in capsys.readouterr().out
    assert main([*words, "--min-rate", "1e-3"]) == 0
    assert main([*words, "--precisions", "fp32,int8"]) == 0
    assert "failed: " in capsys.readouterr().out  # nothing in the file is int8
    for wrong in ("--batch 0", "--backends cuda", "--precisions int4", "--threads x"):
        assert main([*words, *wrong.split()]) == 2
