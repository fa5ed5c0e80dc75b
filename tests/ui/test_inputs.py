"""All inputs of a model at once, from the Run step's form, and the graph in the whole window."""

from __future__ import annotations

import shutil
from typing import Any

import pytest
from lite_engine import optimize

from tests.conftest import ROOT
from tests.ui.test_accessible import AXE, FAULTS
from tests.workbench.test_inputs import sums

pytestmark = [pytest.mark.browser, pytest.mark.cpu]

WHOLE_WINDOW = """() => {
  const card = document.querySelector('.gcard.full')?.getBoundingClientRect();
  return card?.width === 1400 && card.height === 1500;
}"""
BOTH = pytest.mark.parametrize(
    "dark", [False, pytest.param(True, marks=pytest.mark.hours)], ids=["light", "dark"]
)
START = """import lite_workbench as lw
session = lw.open({name!r})
session.convert(targets=["x86"])
workbench = lw.Workbench(session)
workbench"""


@BOTH
def test_inputs_of_two_arrays_by_keyboard(lab: Any, server: Any, dark: bool) -> None:
    root = server("/").root
    optimize(sums()).save(root / "sums.lite")
    (root / "a.csv").write_text("1,2,3,4,5,6\n")
    page = lab([START.format(name="sums.lite")], dark=dark)
    assert page.run_all()
    find, keys = page.page.locator, page.page.keyboard
    page.step("Run")
    find("[data-action=inputs]").press("Enter")
    first = find("[data-field='input:a']")
    first.focus()
    first.select_option("a.csv")
    keys.press("Tab")
    keys.press("Tab")
    keys.type("7")
    page.page.add_script_tag(path=AXE)
    assert page.page.evaluate(FAULTS, []) == []
    page.shot(f"inputs-{'dark' if dark else 'light'}")
    keys.press("Enter")
    find(".lite-header", has_text="a.csv, random data of seed 7").locator("visible=true").wait_for()
    find(".lite-result", has_text="sum").locator("visible=true").first.wait_for()
    page.prints("print(session.feeds['a'].tolist())", "[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]")


@BOTH
def test_the_graph_fills_the_window_of_jupyterlab(lab: Any, server: Any, dark: bool) -> None:
    shutil.copy(ROOT / "notebooks" / "models" / "ocr.onnx", server("/").root)
    page = lab([START.format(name="ocr.onnx")], dark=dark)
    assert page.run_all()
    find = page.page.locator
    find(".lite-graph [data-full]").first.press("Enter")
    card = find(".gcard.full")
    page.page.wait_for_function(WHOLE_WINDOW)  # nothing of JupyterLab cuts it off
    card.locator("[data-find]").fill("b3/dw")
    page.page.keyboard.press("Enter")
    about = card.locator(".about", has_text="b3/dw")
    about.get_by_text("kernel_shape").wait_for()
    about.get_by_text("88×1×3×3 f32").or_(about.get_by_text("88×1×5×5 f32")).first.wait_for()
    page.prints("print(len(session.selected))", "1")
    page.page.add_script_tag(path=AXE)
    assert page.page.evaluate(FAULTS, []) == []
    page.shot(f"graph-full-{'dark' if dark else 'light'}")
    page.page.keyboard.press("Escape")
    card.wait_for(state="detached")
    assert find(".jp-Cell").count() == 1, "the keys were the graph's own"
