"""Evaluations and sweeps in a notebook: widgets whose cells are the answer's own figures."""

from __future__ import annotations

from lite_workbench import rich
from lite_workbench.evaluate import Evaluation
from lite_workbench.evaluate.results import Metric, SampleResult, SampleRow, SideResult
from lite_workbench.evaluate.tasks._base import ClassResult
from lite_workbench.sweep import Cell, Choice, Sweep


def _evaluation() -> Evaluation:
    metric = Metric("top-1", 0.5, 0.1, 0.9, True)
    classes = [ClassResult("<b>cat", 2, {"recall": 0.5})]
    sides = [
        SideResult(name, name, "x86", "fp32", [metric], classes, [("cat", "dog", 1)])
        for name in ("float", "int8")
    ]
    rows = [
        SampleRow(name, "cat", {"float": SampleResult("cat", 0.75, 1.0, True),
                                "int8": SampleResult("dog", None, 0.0, False)})
        for name in ("b.png", "a.png")
    ]  # fmt: skip
    return Evaluation("m", "pets", "classification", 2, sides, [], rows)


def test_an_evaluation_is_four_tables_in_the_order_of_its_rows():
    metrics, classes, confused, samples = rich._VIEWS["Evaluation"](_evaluation()).children
    assert [list(r.values()) for r in metrics.rows] == [
        ["float", "x86", "fp32", "50.0 % (10.0 … 90.0)"],
        ["int8", "x86", "fp32", "50.0 % (10.0 … 90.0)"],
    ]
    assert list(classes.rows[0].values()) == ["<b>cat", 2, "50.0 %", "50.0 %"]
    assert [c["kind"] for c in classes.columns] == ["text", "number", "number", "number"]
    assert [c["kind"] for c in confused.columns] == ["text", "text", "number"]
    assert list(confused.rows[0].values()) == ["cat", "dog", 1]
    assert [list(r.values()) for r in samples.rows] == [
        ["b.png", "cat", "✓ cat (0.750)", "✗ dog", "worse"],
        ["a.png", "cat", "✓ cat (0.750)", "✗ dog", "worse"],
    ]
    assert "<b>cat" not in classes.static_html()  # names of classes are texts, not markup


def test_a_large_data_set_sends_its_first_rows_and_says_how_many_there_are():
    made = _evaluation()
    made.rows *= 150
    samples = rich._VIEWS["Evaluation"](made).children[-1]
    assert len(samples.rows) == 200 and samples.note.endswith("the first 200 of 300")


def test_a_sweep_is_a_table_with_its_sweet_spots():
    slow = Cell(Choice("x86", "fp32", 1), "measured", latency_ms=8.0, throughput=125.0)
    fast = Cell(Choice("x86", "fp32", 2), "measured", latency_ms=4.0, throughput=250.0, front=True)
    made = Sweep("m", [slow, fast])
    chart, table = rich._VIEWS["Sweep"](made).children
    assert [(c["latency_ms"], c["best"]) for c in chart.cells] == [(8, False), (4, True)]
    assert chart.static_svg().count("<circle") == 2
    heads = [c["head"] for c in table.columns]
    threads = str(heads.index("threads"))
    assert [r[threads] for r in table.rows] == ["2", "1"]  # most samples per second first
    assert "2 threads, 4" in table.note.replace(" · batch 1", "") and "250" in table.note
