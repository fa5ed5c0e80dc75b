"""The budget of the Quantize step on a model that loses much accuracy in int8, by its labels."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from tests.conftest import ROOT

MODELS = ROOT / "notebooks" / "models"
pytestmark = [pytest.mark.browser, pytest.mark.cpu]

#: Versions take as many ms as their weights have kB, whatever else this machine does.
START = """import lite_workbench as lw
from lite_workbench import quantizing
quantizing._ms = lambda p, _: sum(v.const.nbytes for v in p.model.graph.constants()) / 1e3
session = lw.open("listops.onnx")
session.convert(targets=["x86"])
session.threads = 1
data = "listops_held_back.npz"
session.quantize(data, method="minmax", limit=40, equalize=False, force=True)
session.explore(data=data, limit=200)
workbench = lw.Workbench(session, step="Quantize")
workbench"""
BEST = 'print(len(workbench.step("Quantize").layers.kept))'


def test_a_smaller_budget_puts_layers_back_to_float(lab: Any, server: Any) -> None:
    for name in ("listops.onnx", "listops_held_back.npz"):
        shutil.copy(MODELS / name, server("/").root)
    page = lab([START], dark=True)
    assert page.run_all()
    find = page.page.locator
    slider = find("[data-range=budget]").locator("visible=true")
    slider.wait_for()
    find(".lite-tradeoff", has_text="top-1").locator("visible=true").first.wait_for()
    slider.focus()
    page.page.keyboard.press("End")
    find(".lite-tradeoff", has_text="int8 in all layers.").wait_for()
    page.shot("budget-largest")
    slider.fill("1")
    find(".lite-tradeoff", has_text="int8 in all layers except 8 layers").wait_for()
    for _ in range(50):  # the page tells the kernel in its own time
        if (best := page.run_code(BEST)) == "8":
            break
        page.page.wait_for_timeout(100)
    assert best == "8"
    page.shot("budget-small")

    # the labels of the samples judge a new run, too
    header = find(".lite-step-Quantize .lite-header")
    assert header.locator("[data-set=judged]").input_value() == "labels"
    assert header.locator("[data-set=method]").input_value() == "minmax"
    header.locator("[data-action=run]").click()
    find(".lite-step-Quantize", has_text="24 samples, checked on 400").wait_for()
    find(".lite-tradeoff", has_text="top-1").first.wait_for()
    assert not page.errors
    page.shot("budget-labels")
