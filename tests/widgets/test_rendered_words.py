"""What widgets say in a real browser: whole sentences, and nothing of what is not there."""

from __future__ import annotations

import re

import lite_widgets as lw
import numpy as np
import pytest

from tests.widgets import samples
from tests.widgets.showcase import difference, timeline

pytestmark = pytest.mark.browser


def test_outputs_without_a_difference_are_said_to_be_equal(mount):
    """No place that would be worst, no map of nothing and no legend from 0 to 0."""
    pane, same = difference(), np.ones((1, 2, 3, 4), np.float32)
    pane.show(same, same)
    text = mount([pane], width=680).locator(".lite-difference").inner_text()
    assert "All values of this output are equal." in text
    assert "worst at" not in text and "Difference by position" not in text


def test_words_have_room_or_are_left_out(mount):
    """Sentences break into lines; types in a narrow bar are named whole or not at all."""
    summary = "6 ms in a run near the median; threads wait for each other 83 % of the time; " * 2
    profile = samples.profile()
    line = {**timeline(profile), "summary": summary}
    widgets = [lw.Timeline(profile=profile, timeline=line), lw.TimingLine(profile=profile)]
    page = mount(widgets, width=480)
    said = page.get_by_text("6 ms in a run").evaluate(
        "(e) => { const card = e.closest('.card').getBoundingClientRect(),"
        " box = e.getBoundingClientRect(); return box.right <= card.right && e.scrollWidth <="
        " e.clientWidth; }"
    )
    assert said
    shown = page.locator(".tot i").evaluate_all(
        "(all) => all.map((i) => { const label = i.querySelector('span'); if (!label) return null;"
        " const a = i.getBoundingClientRect(), b = label.getBoundingClientRect();"
        " return b.top >= a.bottom ? 'hidden' : b.right <= a.right + 1 ? 'whole' : 'cut'; })"
    )
    assert "whole" in shown and "hidden" in shown and "cut" not in shown


def test_a_version_says_what_ran_elsewhere(mount):
    ran = "27 of 97 layers ran on OpenCL, 70 on the CPU"
    point = {"method": "mse", "kept": [], "accuracy": 98, "latency_ms": 3, "bytes": 4, "ran": ran}
    whole = {"accuracy": 98.5, "latency_ms": 5, "bytes": 16}
    page = mount([lw.TradeOff(points=[point], float_=whole, method="mse", budget=1.0)])
    assert page.locator("[data-part=summary]").inner_text().endswith(f"{ran}.")
    assert ran in page.locator("[data-point='0']").get_attribute("data-tip")


def test_a_version_without_weights_is_drawn(mount):
    """Bytes are those of the weights: a file holds more."""
    point = {"method": "mse", "kept": [], "accuracy": 98, "latency_ms": 3, "bytes": 0}
    page = mount([lw.TradeOff(points=[point], float_=point, method="mse", budget=1.0)])
    circles = page.locator("[data-part=chart] circle")
    radii = circles.evaluate_all("(all) => all.map((c) => +c.getAttribute('r'))")
    assert len(radii) == 3 and all(radius > 0 for radius in radii)
    said = page.locator(".card").inner_text()
    assert "weights 0" in said and "NaN" not in said and "file" not in said


def test_numbers_and_reasons_are_whole_in_a_narrow_card(mount):
    """Half a number is another number; a reason that is scrolled out of sight is none."""
    profile = samples.profile()
    why = {"source": "row-major", "target": "channels-last", "bytes": 1_840_000,
           "why": "the model's input comes from the host in the order of its file"}  # fmt: skip
    profile["layers"] = [{**profile["layers"][0], "name": "Relayout input", "op": "Relayout",
                          "overhead": True, "copy": why}, *profile["layers"]]  # fmt: skip
    blocks = sorted({node["block"] for node in samples.graph()["nodes"]})
    graph = lw.GraphView(graph=samples.graph(), profile=profile, open_blocks=blocks)
    long = [{**row, "name": f"net/{row['name']}/depthwise/Relu6"} for row in profile["layers"]]
    layers = lw.LayerTable(profile={**profile, "layers": long})
    page = mount([graph, lw.CopiesTable(profile=profile), layers], width=380)
    texts = page.locator("#w0 svg text").all_text_contents()
    assert [text for text in texts if re.fullmatch(r"\s*[−\d.]+…\s*", text)] == []
    assert sum(bool(re.fullmatch(r"\s*\d+\.\d+\s*", text)) for text in texts) > 10
    for table in page.locator(".tw").all():
        assert table.evaluate("(e) => e.scrollWidth <= e.clientWidth + 1")
    assert page.locator("#w2 td.name").first.bounding_box()["width"] >= 130, "it was 110"


def test_values_that_are_not_finite_are_counted_and_named(mount):
    """The histogram holds finite differences only: its words do not speak for the others."""
    pane = difference()
    a = np.full((1, 2, 8, 8), 2.0, np.float32)
    b = a + np.float32(1e-6)
    b[0, 1, 2, 3] = np.inf
    pane.show(a, b)
    text = mount([pane], width=680).locator(".lite-difference").inner_text()
    assert "1 value is not finite, the others are within rounding" in text
    assert re.search(r"worst at \[0, 1, 2, 3\]: \S+\s+2, \S+ not finite", text), text


def test_both_graphs_are_seen_in_a_narrow_card(mount):
    """The original is above the optimized one, not gone."""
    graph = samples.graph()
    page = mount([lw.GraphView(graph=graph, source_graph=graph, height=460)], width=560)
    boxes = [
        page.locator(f".gv[data-pane={name}]").evaluate(
            "(e) => { const { left, top, bottom, height } = e.getBoundingClientRect();"
            " return [left, top, bottom, height]; }"
        )
        for name in ("source", "main")
    ]
    (left, _, bottom, height), (left_below, top_below, _, height_below) = boxes
    assert left == left_below and bottom < top_below and min(height, height_below) > 100
    for name in ("source", "main"):
        assert page.locator(f".gv[data-pane={name}] .slice g").count()
    # nor is there a column of a few pixels where a narrow window is all there is
    page.set_viewport_size({"width": 700, "height": 900})
    page.click("[data-full]")
    for name in ("source", "main"):
        box = page.locator(f".gv[data-pane={name}]").bounding_box()
        assert box["width"] > 500 and box["height"] > 200


#: Contrast of each text of the column with a color of its own, on the row's color.
CONTRASTS = """() => {
  const light = ([r, g, b]) => [r, g, b]
    .map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + [0.2126, 0.7152, 0.0722][i] * v, 0.05);
  const numbers = (color) => color.match(/[\\d.]+/g).map(Number);
  const behind = (e) => {
    const color = getComputedStyle(e).backgroundColor, [, , , alpha = 1] = numbers(color);
    return alpha ? color : behind(e.parentElement);
  };
  return [...document.querySelectorAll('tr[data-k] span[style^=color]')].map((e) => {
    const pair = [getComputedStyle(e).color, behind(e)].map((c) => light(numbers(c)));
    return Math.max(...pair) / Math.min(...pair);
  });
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_slower_and_faster_can_be_read_on_a_selected_row(mount, theme):
    profile = samples.profile()
    other = {**profile, "backend": "opencl", "layers": [
        {**row, "median_ms": row["median_ms"] * (2 if i % 2 else 0.5)}
        for i, row in enumerate(profile["layers"])
    ]}  # fmt: skip
    names = [row["name"] for row in profile["layers"][:4]]
    table = lw.LayerTable(profile=profile, baseline=other, selected=names)
    page = mount([table], theme=theme, width=900)
    assert page.locator("th", has_text="Δ OpenCL").count() == 1
    found = page.evaluate(CONTRASTS)
    assert len(found) > 3 and min(found) >= 4.5, found
