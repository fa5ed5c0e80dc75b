"""Evaluate in a real JupyterLab: a data set, the metrics, one sample, and down to its layers."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from tests.conftest import ROOT

MODELS = ROOT / "notebooks" / "models"
pytestmark = [pytest.mark.browser, pytest.mark.cpu]

START = """import lite_workbench as lw
session = lw.open("digits.onnx")
session.convert(targets=["x86"])
session.plant_fault(session.model.graph.nodes[3].name, "overflow_fp16", backend="reference")
workbench = lw.Workbench(session)
workbench"""


def test_a_person_evaluates_looks_at_a_sample_and_sweeps(lab: Any, server: Any) -> None:
    root = server("/").root
    shutil.copy(MODELS / "digits.onnx", root)
    shutil.copy(MODELS / "digits_held_back.npz", root / "digits_labeled.npz")
    page = lab([START])
    assert page.run_all()
    find = page.page.locator

    # a data set and two sides; metrics with intervals
    page.step("Evaluate")
    header = find(".lite-header").locator("visible=true")
    for name, value in (("data", "digits_labeled.npz"), ("a", "x86"), ("b", "reference"),
                        ("limit", "100")):  # fmt: skip
        header.locator(f"[data-set={name}]").select_option(value)
    page.page.click(".lite-header [data-action=run] >> visible=true")
    find(".lite-data td", has_text="100.0 % (96").locator("visible=true").first.wait_for(
        timeout=120_000
    )
    find("button[data-step=Evaluate] .rs", has_text="top-1").wait_for()
    find(".lite-notice", has_text="loses 100.0").locator("visible=true").wait_for()
    page.shot("evaluate-metrics")

    # a click on a sample shows its image and both answers, and leads to the layers
    row = find(".lite-data tr", has_text="no finite values").locator("visible=true").first
    assert "worse" in row.inner_text() and "✓" in row.inner_text() and "✗" in row.inner_text()
    row.locator("[data-action=sample]").click()
    find(".lite-result img").locator("visible=true").first.wait_for()
    find(".lite-result").locator("visible=true").nth(1).wait_for()
    assert find(".lite-result").locator("visible=true").count() == 2
    page.shot("evaluate-sample")

    # the sweep: a chart with the front and the best combination, and its matrix
    page.page.click("[data-tab=Sweep]")
    form = find(".lite-form", has_text="Sweep the choices").locator("visible=true")
    form.locator("[data-field=batches]").fill("1,2")
    form.locator("[data-field=backends]").fill("x86")
    form.locator("button[type=submit]").click()
    chart = find(".lite-sweepchart svg.chart").locator("visible=true")
    chart.wait_for(timeout=120_000)
    assert "x86 · fp32" in chart.get_attribute("aria-label")
    find(".lite-data td", has_text="★").locator("visible=true").first.wait_for()
    page.shot("evaluate-sweep")

    page.page.click("[data-action=layers] >> visible=true")
    find(".verdict .what", has_text="goes wrong at").wait_for(timeout=120_000)
    code = page.run_code("print('\\n'.join(session.code))")
    assert "session.evaluate('digits_labeled.npz', ['x86', 'reference'], limit=100)" in code
    assert "session.sweep(backends=['x86'], batches=[1, 2], data='digits_labeled.npz'" in code
