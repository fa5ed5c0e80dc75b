"""Look inside in a real JupyterLab: the file's own layers, weights, and two backends' values."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from tests.conftest import ROOT

MODELS = ROOT / "notebooks" / "models"
pytestmark = [pytest.mark.browser, pytest.mark.cpu]

START = """import lite_workbench as lw
session = lw.open("ocr.onnx")
session.convert(targets=["x86"])
session.set_input("ocr_total.png")
session.plant_fault("b3/dw", "drop_last_column", backend="reference")
workbench = lw.Workbench(session)
workbench"""


def test_a_person_looks_inside_a_layer(lab: Any, server: Any) -> None:
    for name in ("ocr.onnx", "ocr_total.png"):
        shutil.copy(MODELS / name, server("/").root)
    page = lab([START])
    assert page.run_all()
    find = page.page.locator
    card = find(".lite-tensor").locator("visible=true")

    # the graph as it is in the file: activations of a layer, then its weights
    find("[data-tab=Values]").locator("visible=true").click()
    page.run_code("session.selected = 'b1/dw'")
    card.get_by_text("16 channels").wait_for()
    assert "1×16×24×160" in card.inner_text()
    page.shot("inside-model")
    card.locator("[data-set=chosen]").select_option("b1.dw.weight")
    card.get_by_text("16×1×3×3").wait_for()
    page.shot("inside-weights")

    # two backends beside each other, and where they differ
    page.step("Compare")
    find(".verdict .what", has_text="b3/dw").wait_for()
    card.locator("[data-set=shown]", has_text="difference").click()
    page.shot("inside-compare")
    values = page.run_code(
        "look = session.look('b3/dw', ('x86', 'reference')); a, b = look.arrays.values()\n"
        "print(abs(b - a).max(axis=(0, 1, 2)).argmax() == a.shape[3] - 1)"
    )
    assert values == "True"
    shown = card.locator(".facts").inner_text()
    assert "1×" in shown and page.run_code("print(f'{(b - a).max():.4g}')")[:4] in shown

    # the values of the optimised graph, where they were measured
    page.step("Profile")
    find("[data-tab=Values]").locator("visible=true").click()
    card.locator("[data-sheet]").wait_for()
    page.shot("inside-profile")
    assert not page.errors
