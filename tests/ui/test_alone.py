"""A step in a cell of its own: its keys are its own, and it scrolls in one place at a time."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from tests.conftest import ROOT

pytestmark = [pytest.mark.browser, pytest.mark.cpu]

START = """import lite_workbench as lw
from lite_workbench.steps import ProfileStep
session = lw.open("ocr.onnx")
session.profile(runs=2)
ProfileStep(session)"""
CELLS = """() => window.jupyterapp.shell.currentWidget.content.widgets
  .map((cell) => cell.model.type)"""
#: Elements of the output that scroll and lie inside of another one that does.
NESTED = """() => {
  const scrolls = (e) => /auto|scroll/.test(getComputedStyle(e).overflowY)
    && e.scrollHeight > e.clientHeight;
  const output = document.querySelector('.lite-step-body').closest('.jp-OutputArea-output');
  const all = [output, ...output.querySelectorAll('*')].filter(scrolls);
  return all.filter((e) => all.some((o) => o !== e && o.contains(e))).map((e) => e.className);
}"""


#: Everything in the output that can have the focus, one after the other.
FOCUS = """(i) => {
  const able = 'a[href],button,input,select,textarea,summary,[tabindex]';
  const all = [...document.querySelectorAll('.lite')].flatMap((e) => [...e.querySelectorAll(able)])
    .filter((e) => !e.disabled && e.getClientRects().length);
  all[i]?.focus();
  return i < all.length;
}"""
STRIP = """import lite_widgets
layers = [{"index": i, "name": f"l{i}", "op": "Conv", "nan_baseline": 0, "nan_candidate": 0,
           "rel_l2": 10.0 ** (i - 6), "isolated": {"rel_l2": 1e-6}} for i in range(6)]
strip = lite_widgets.ErrorStrip(
    comparison={"baseline": "x86", "candidate": "opencl", "tolerance": 1e-2, "layers": layers})
strip"""


def open_step(lab: Any, server: Any) -> Any:
    """JupyterLab with ProfileStep alone in the first cell, filled."""
    shutil.copy(ROOT / "notebooks" / "models" / "ocr.onnx", server("/").root)
    page = lab([START, "2"])
    assert page.run_all()
    page.page.locator(".lite-table tbody tr[data-k]").first.wait_for()
    return page.page


def test_no_scrollbar_inside_of_another(lab: Any, server: Any) -> None:
    page = open_step(lab, server)
    for width in (1400, 1000):
        page.set_viewport_size({"width": width, "height": 800})
        for tab in ("Layers", "Roofline", "Types", "Copies", "Memory"):
            page.locator(f"[data-tab={tab}]").click()
            assert page.evaluate(NESTED) == [], (width, tab)


def test_no_key_on_a_widget_changes_the_notebook(lab: Any, server: Any) -> None:
    """b inserts a cell, m makes it Markdown, d d deletes it, x cuts it out."""
    page = open_step(lab, server)
    at = 0
    while page.evaluate(FOCUS, at):
        for key in ("b", "m", "x", "m"):  # x takes back what b did, m stays
            page.keyboard.press(key)
        at += 1
    assert at > 20 and page.evaluate(CELLS) == ["code", "code"]


def test_arrow_keys_move_a_slider_and_not_the_notebook(lab: Any) -> None:
    lab_page = lab([STRIP, "2"])
    assert lab_page.run_all()
    slider = lab_page.page.locator("[data-range=tolerance]")
    slider.focus()
    before = float(slider.input_value())
    for _ in range(3):
        lab_page.page.keyboard.press("ArrowDown")
    assert float(slider.input_value()) == pytest.approx(before - 3 * 0.05)
    lab_page.prints("print(strip.tolerance < 1e-2)", "True")


def test_the_notebook_is_saved_from_a_widget_too(lab: Any) -> None:
    lab_page = lab([STRIP])
    assert lab_page.run_all()
    lab_page.page.locator("[data-range=tolerance]").focus()
    dirty = "() => window.jupyterapp.shell.currentWidget.context.model.dirty"
    assert lab_page.page.evaluate(dirty)
    lab_page.page.keyboard.press("Control+s")
    lab_page.page.wait_for_function(f"() => !({dirty})()")
