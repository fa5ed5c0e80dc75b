"""The graph in the whole window: pan and zoom, its map, shapes on edges, one layer's facts."""

from __future__ import annotations

import os
from pathlib import Path

import lite_widgets as lw
import pytest

from tests.widgets import samples
from tests.widgets.browser import saved, settle

pytestmark = pytest.mark.browser

#: Where a layer is drawn, as its middle.
MIDDLE = """(name) => {
  const r = document.querySelector(`.gv [data-k="${name}"] rect`).getBoundingClientRect();
  return [r.x + r.width / 2, r.y + r.height / 2];
}"""
CARD = """() => {
  const { x, y, width, height } = document.querySelector(".gcard").getBoundingClientRect();
  return [x, y, width, height];
}"""


def graph():
    made = samples.graph()
    for node in made["nodes"]:
        node["name"] = f"net/{node['name']}"
        node["inputs"] = [i if i == "x" else f"net/{i}" for i in node["inputs"]]
    node = made["nodes"][3]
    node["attributes"] = {"strides": "2 1", "group": "16"}
    node["weights"] = [{"name": "w.3", "type": "16×1×3×3 f32", "bytes": 576}]
    return made, node


def test_the_graph_fills_the_window_and_comes_back(mount):
    made, node = graph()
    name = node["name"]
    blocks = sorted({n["block"] for n in made["nodes"]})
    # in a narrow box that cuts off what is outside of it, as a cell of a notebook does
    page = mount([lw.GraphView(graph=made, height=420)], width=360)
    page.evaluate("() => { document.querySelector('#w0').style.cssText = 'overflow:hidden;"
                  "contain:strict;height:430px' }")  # fmt: skip
    page.set_viewport_size({"width": 1300, "height": 900})
    page.click("[data-full]")
    settle(page)
    width, height = page.evaluate("() => [innerWidth, innerHeight]")
    assert page.evaluate(CARD) == [0, 0, width, height]
    page.click("[data-all]")
    settle(page)
    assert len(saved(page)["open_blocks"]) >= len(blocks)

    # names without what all begin with, shapes between the nodes, facts beside them
    page.fill("[data-find]", name)
    page.keyboard.press("Enter")
    settle(page)
    texts = page.locator(f".gv [data-k='{name}'] text").all_text_contents()
    assert name.removeprefix("net/") in [text.strip() for text in texts]
    assert (
        "×".join(map(str, node["output_shapes"][0]))
        in page.locator(".gv .shape").all_text_contents()
    )
    about = page.locator(".about").inner_text()
    for said in (name, node["op"], "strides", "2 1", "w.3", "16×1×3×3 f32"):
        assert said in about
    if folder := os.environ.get("LITE_TEST_SHOTS"):
        page.screenshot(path=str(Path(folder) / "graph-enlarged.png"))

    # dragged to either side, beyond the drawing's edges; the wheel with Ctrl zooms at the pointer
    x, y = page.evaluate(MIDDLE, name)
    page.mouse.move(40, 200)
    page.mouse.down()
    page.mouse.move(190, 290)
    page.mouse.up()
    settle(page)
    moved = page.evaluate(MIDDLE, name)
    assert moved == pytest.approx([x + 150, y + 90], abs=1)
    page.mouse.move(*moved)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -200)
    page.keyboard.up("Control")
    settle(page)
    assert page.evaluate(MIDDLE, name) == pytest.approx(moved, abs=2)

    # the map: its end is the drawing's end
    mapped = page.locator(".ov").bounding_box()
    drawn = page.locator(".ov g").bounding_box()
    page.mouse.click(mapped["x"] + drawn["width"] / 2, drawn["y"] + drawn["height"] - 2)
    settle(page)
    last = made["nodes"][-1]["name"]
    assert page.locator(f".gv [data-k='{last}']").is_visible()
    seen = page.locator(".ov .viewport").bounding_box()
    assert seen["y"] + seen["height"] >= drawn["y"] + drawn["height"] - 2

    page.keyboard.press("Escape")
    settle(page)
    assert page.evaluate(CARD)[2] <= 360 and page.locator(".about").count() == 0
    assert page.evaluate("() => document.activeElement.dataset.full !== undefined")
    assert saved(page)["selected"] == [name], "Esc closed the view, and kept the selection"


def test_a_comparison_marks_the_failing_layer_on_the_map(mount):
    page = mount(
        [
            lw.GraphView(
                graph=samples.graph(), comparison=samples.comparison(), profile=samples.profile()
            )
        ],
        theme="dark",
    )
    page.click("[data-full]")
    settle(page)
    assert page.locator(".ov circle").count() == 1
    assert page.locator(".gv .nd.first").is_visible()
    if folder := os.environ.get("LITE_TEST_SHOTS"):
        page.screenshot(path=str(Path(folder) / "graph-enlarged-compare.png"))
