"""A Plotly figure in a cell beside the Workbench: one selection, drawn anew in place."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from tests.conftest import ROOT

pytestmark = [pytest.mark.browser, pytest.mark.cpu]

START = """import lite_workbench as lw
session = lw.open("digits.onnx")
session.convert(targets=["x86"])
session.profile("x86", 3)
figure = session.linked_figure("latency")
figure"""
WORKBENCH = """workbench = lw.Workbench(session, step="Profile")
workbench"""


def test_one_selection_in_plotly_and_in_the_workbench(lab: Any, server: Any) -> None:
    shutil.copy(ROOT / "notebooks" / "models" / "digits.onnx", server("/").root)
    page = lab([START, WORKBENCH])
    assert page.run_all()
    find, mouse = page.page.locator, page.page.mouse
    plot = find(".js-plotly-plot .nsewdrag").first
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    mouse.move(box["x"] + 2, box["y"] + 2)
    mouse.down()
    mouse.move(box["x"] + box["width"] / 3, box["y"] + box["height"] - 2, steps=8)
    mouse.up()
    page.prints("print(1 < len(session.selected) < len(session.profiles['x86'].layers))", "True")
    chosen = page.run_code("print(session.selected[-1])")
    find(f".lite-table tr.sel[data-k='{chosen}']").wait_for()

    row = find(".lite-table tbody tr[data-k]:not(.sel)").last
    name = row.get_attribute("data-k")
    row.click()
    page.prints(
        "bars = figure.data[0]\n"
        "print([n for n, w in zip(bars.customdata, bars.marker.line.width) if w])",
        f"['{name}']",
    )
    page.page.wait_for_function(
        "() => [...document.querySelectorAll('.js-plotly-plot .point path')]"
        ".filter((e) => e.style.strokeWidth === '3px').length === 1"
    )
    page.shot("linked-figure")

    first = page.run_code("print(figure.data[0].y[0])")
    page.run_code("session.profile('x86', 4)")
    assert page.run_code("print(figure.data[0].y[0])") != first
    assert find(".js-plotly-plot").count() == 1
