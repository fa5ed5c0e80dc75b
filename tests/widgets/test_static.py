"""What a saved notebook shows where no kernel runs."""

from __future__ import annotations

import re
from typing import Any

import lite_widgets as lw
import pytest
from lite_widgets import CodeDrawer, Notice, Stepper

from tests.widgets import samples
from tests.widgets.showcase import ROOF, memory, showcase, tensor

#: Texts and bars that leave their picture, and texts of which one covers the other.
COVERED = """() => {
  const frame = document.querySelector('svg').getBoundingClientRect();
  const boxes = [...document.querySelectorAll('text')].filter((t) => t.textContent.trim())
    .map((t) => [t.textContent.trim(), t.getBoundingClientRect()]);
  const bars = [...document.querySelectorAll('rect')]
    .map((bar) => ['a bar', bar.getBoundingClientRect()]);
  const outside = [...boxes, ...bars]
    .filter(([, r]) => r.left < frame.left - 1 || r.right > frame.right + 1
      || r.top < frame.top - 1 || r.bottom > frame.bottom + 1).map(([text]) => `outside: ${text}`);
  const pairs = boxes.flatMap(([text, p], i) => boxes.slice(i + 1)
    .filter(([, q]) => Math.min(p.right, q.right) - Math.max(p.left, q.left) > 1
      && Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top) > 3)
    .map(([other]) => `${text} | ${other}`));
  return [...outside, ...pairs];
}"""


def test_the_steps_are_a_line_of_tabs_and_not_a_table() -> None:
    stepper = Stepper(current="Compare")
    stepper.set_step("Compare", "attention", "1 <wrong> layer")
    said = stepper.static_html()
    assert "<table" not in said
    assert said.count("title=") == len(stepper.steps)
    assert "<b>Compare</b> <small>1 &lt;wrong&gt; layer</small>" in said
    assert "needs attention" in said and "<b>Model</b>" not in said


def test_code_in_a_notice_is_code() -> None:
    said = Notice(what="**No <kernel>**: run `lite doctor`", detail="see `a<b`").static_html()
    assert "<b>No &lt;kernel&gt;</b>" in said
    assert "<code>lite doctor</code>" in said and "<code>a&lt;b</code>" in said
    assert "`" not in said and "**" not in said


def test_lines_of_code_have_a_font_of_code() -> None:
    drawer = CodeDrawer(lines=["a = 1 < 2", "print(a)"])
    assert "monospace" in drawer.static_html() and "a = 1 &lt; 2\nprint(a)" in drawer.static_html()


def test_no_accuracy_above_100_percent_stands_on_the_axis() -> None:
    version = {"method": "kl", "accuracy": 100.0, "latency_ms": 1.0, "bytes": 1}
    picture = str(lw.TradeOff(points=[version], float_=version).static_svg())
    marks = [float(mark) for mark in re.findall(r">(\d+\.\d) %<", picture)]
    assert len(marks) == 5 and max(marks) == 100


def test_text_outside_of_a_picture_has_the_colour_of_the_page() -> None:
    """No grey has a contrast of 4.5 on white and on JupyterLab's #111: the page knows its own."""
    stepper = Stepper()
    stepper.caption = "ocr.onnx"
    said = stepper.static_html() + stepper._static_caption()
    fills = set(re.findall(r"color:(#\w+)", said))
    assert "ocr.onnx" in said and fills == set()


def crowded() -> list[Any]:
    """Widgets of a network with long names, regions, a large arena, and many failing layers."""
    scope = "MobilenetV2/expanded_conv_16/project/BatchNorm/FusedBatchNormV3/"
    profile, comparison = samples.profile(), samples.comparison()
    for i, row in enumerate([*profile["layers"], *comparison["layers"]]):
        row["name"], row["region"] = f"{scope}{row['name']}_{i}", f"stage {len(row['block'])}: x ×6"
        row["state"] = "failing"
    kept = memory()
    for each in kept["tensors"]:
        each.update(name=scope + each["name"], bytes=each["bytes"] * 40, offset=each["offset"] * 40)
    inside = tensor()
    inside.tensor = {**inside.tensor, "name": scope + "y"}
    # A layer that is faster by more than the total: medians of parts do not add up to its median.
    moves = [{"name": scope + name, "kind": "changed", "before": [name], "after": [name],
              "delta_ns": 1_000_000 * ms}
             for name, ms in (("a", -56), ("b", 38), ("c", 47))]  # fmt: skip
    change = {"baseline": "x86", "candidate": "reference", "before_ns": 9_000_000,
              "after_ns": 38_000_000, "changes": moves, "warnings": []}  # fmt: skip
    point = {"accuracy": 89.4, "latency_ms": 1.0, "bytes": 248_000}
    near = {"accuracy": 89.5, "latency_ms": 1.05, "bytes": 950_000}
    trade = lw.TradeOff(points=[{**point, "method": "kl"},
                                {**point, "method": "kl", "accuracy": 71.3, "latency_ms": 0.9}],
                        float_=near)  # fmt: skip
    return [trade, lw.LatencyChart(profile=profile), lw.Roofline(profile=profile, roof=ROOF),
            lw.ErrorStrip(comparison=comparison), lw.MemoryMap(memory=kept),
            lw.OverviewStrip(profile=profile), lw.TypeSummary(profile=profile),
            lw.Waterfall(change=change), inside]  # fmt: skip


@pytest.mark.browser
def test_no_label_covers_another_or_leaves_its_picture(chromium: Any) -> None:
    page = chromium.new_page(viewport={"width": 1000, "height": 1000})
    found = {}
    for number, widget in enumerate([*showcase(), *crowded()]):
        picture = widget.static_svg()
        if picture:
            page.set_content(picture)
            faults = page.evaluate(COVERED)
            if faults:
                found[f"{number} {type(widget).__name__}"] = faults
    page.close()
    assert not found
