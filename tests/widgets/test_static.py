"""What a saved notebook shows where no kernel runs."""

from __future__ import annotations

import re
from typing import Any

import lite_widgets as lw
import numpy as np
import pytest
from lite_widgets import CodeDrawer, Notice, Stepper
from lite_widgets._svg import on, ramp, ticks

from tests.widgets import samples
from tests.widgets.showcase import ROOF, memory, showcase, tensor, timeline

LONG_RUN = "ocr on x86 (fp32, 2 threads)"

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
    marks = [float(mark) for mark in re.findall(r">(\d+(?:\.\d+)?) %<", picture)]
    assert len(marks) > 3 and max(marks) == 100


def test_a_version_without_weights_has_a_picture() -> None:
    version = {"method": "kl", "accuracy": 100.0, "latency_ms": 1.0, "bytes": 0}
    assert "<circle" in str(lw.TradeOff(points=[version], float_=version).static_svg())


def test_marks_of_axes_are_round() -> None:
    assert ticks(0, 2.18) == [0, 1, 2] and ticks(0, 25_000) == [0, 1e4, 2e4]
    assert ticks(68.3, 92.3) == [70, 80, 90] and ticks(0.032, 0.07) == [0.04, 0.05, 0.06, 0.07]


def test_a_version_is_on_the_axes_where_its_numbers_are() -> None:
    version = {"method": "kl", "accuracy": 80.0, "latency_ms": 2.0, "bytes": 1}
    other = {**version, "accuracy": 90.0, "latency_ms": 4.0}
    picture = str(lw.TradeOff(points=[version], float_=other).static_svg())
    across, up = (
        {float(m[2]): float(m[1]) for m in re.finditer(mark, picture)}
        for mark in (r'<text x="([\d.]+)" [^>]*middle[^>]*>([\d.]+)<',
                     r'<text x="[\d.]+" y="([\d.]+)" [^>]*end[^>]*>([\d.]+) %<')
    )  # fmt: skip
    circle = re.search(r'<circle cx="([\d.]+)" cy="([\d.]+)"', picture)
    at = [np.interp(v, sorted(marks), [marks[k] for k in sorted(marks)])
          for v, marks in ((2.0, across), (80.0, {k: v - 4 for k, v in up.items()}))]  # fmt: skip
    np.testing.assert_allclose([float(circle[1]), float(circle[2])], at, atol=0.2)


def test_the_saved_roofline_says_that_it_is_too_low() -> None:
    profile = samples.profile()
    fast = max(profile["layers"], key=lambda row: row.get("gflops") or 0)
    for row in profile["layers"]:
        row["roofline_fraction"] = 1.05
    roof = {**ROOF, "gflops": 247.5444}
    said = lw.Roofline(profile=profile, roof=roof).static_svg()
    assert "248 GFLOP/s measured" in said and "too low" not in said
    fast["roofline_fraction"] = 1.2
    said = lw.Roofline(profile=profile, roof={**roof, "gflops": fast["gflops"] / 1.2}).static_svg()
    assert "The roofline is too low: 1 layer is above it" in said
    heights = [float(y) for y in re.findall(r'<circle cx="[\d.]+" cy="([\d.]+)"', said)]
    assert min(heights) > 36, "no circle covers the words above the chart"


def test_work_that_a_layer_does_not_do_has_no_rate() -> None:
    profile = samples.profile()
    for row in profile["layers"]:
        row["gflops"] = 0.0
    said = lw.LayerTable(profile=profile).static_html()
    assert ">0.0<" not in said and said.count(">–<") == min(20, len(profile["layers"]))


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
    long = {**timeline(profile), "summary": "2.25 ms in a run near the median; " * 6}
    change = {"baseline": LONG_RUN, "candidate": "reference", "before_ns": 9_000_000,
              "after_ns": 38_000_000, "changes": moves, "warnings": []}  # fmt: skip
    point = {"accuracy": 89.4, "latency_ms": 1.0, "bytes": 248_000}
    near = {"accuracy": 89.5, "latency_ms": 1.05, "bytes": 950_000}
    trade = lw.TradeOff(points=[{**point, "method": "kl"},
                                {**point, "method": "kl", "accuracy": 71.3, "latency_ms": 0.9}],
                        float_=near)  # fmt: skip
    said = {**comparison, "notice": {"what": "x86: 4 of them need no computation; " * 5}}
    return [trade, lw.LatencyChart(profile=profile), lw.Roofline(profile=profile, roof=ROOF),
            lw.ErrorStrip(comparison=said), lw.ErrorStrip(comparison=comparison),
            lw.MemoryMap(memory=kept),
            lw.OverviewStrip(profile=profile), lw.TypeSummary(profile=profile),
            lw.Waterfall(change=change), lw.Timeline(profile=profile, timeline=long),
            inside]  # fmt: skip


def test_what_is_not_there_is_not_said_to_be_something() -> None:
    """A backend that has not run recognized nothing because of that; netron's file is not empty."""
    waits = {"kind": "empty", "title": "OpenCL has not run yet", "text": "Drop an image."}
    assert lw.ResultCard(status=waits).static_html() == "<p>OpenCL has not run yet</p>"
    assert "Nothing was recognized." in lw.ResultCard().static_html()
    running = {"kind": "empty", "under_way": True, "title": "Profiling x86"}
    assert "Profiling" not in lw.LatencyChart(status=running).static_html()
    assert "OpenCL has not run yet" in lw.TradeOff(status=waits).static_html()
    assert lw.NetronView(name="ocr.onnx").static_html() == ""
    assert "ocr.onnx" in lw.NetronView(name="ocr.onnx", model=b"onnx").static_html()


def test_numbers_stand_where_they_belong_and_names_are_whole() -> None:
    """The memory of a process is not the graph's; the two runs of a waterfall have their names."""
    *_, waterfall, _, _ = crowded()
    assert LONG_RUN in waterfall.static_svg()
    profile = {**samples.profile(), "peak_memory_bytes": 189_000_000}
    assert "189" not in lw.GraphView(graph=samples.graph(), profile=profile).static_svg()


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


def contrast(a: str, b: str) -> float:
    """WCAG's ratio of two colors."""
    light = []
    for color in (a, b):
        parts = [int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        red, green, blue = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4
                            for v in parts)  # fmt: skip
        light.append(0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05)
    return max(light) / min(light)


def test_names_on_bars_can_be_read() -> None:
    """4.5 to 1 on every color of the scale, and so in the graph and the timeline."""
    shades = [ramp("time", i / 50) for i in range(51)]
    assert min(contrast(on(shade), shade) for shade in shades) >= 4.5
    profile = samples.profile()
    found = 0
    for widget in (
        lw.GraphView(graph=samples.graph(), profile=profile),
        lw.Timeline(profile=profile, timeline=timeline(profile)),
    ):
        for fill, ink in re.findall(
            r'<rect [^>]*fill="(#\w{6})"[^>]*/><text [^>]*fill="(#0{6}|#f{6})"', widget.static_svg()
        ):
            found += 1
            assert contrast(fill, ink) >= 4.5, (fill, ink)
    assert found > 3


def test_the_saved_headline_is_no_more_exact_than_the_page() -> None:
    """Three significant digits; on a busy machine only those that are certain."""
    profile = samples.profile()
    for median, step, text in (
        (0.9934, None, "0.993 ms"), (160.4, None, "160 ms"), (3.54, 1.0, "4 ms"),
        (0.4, 1.0, "1 ms"), (12.345, 0.1, "12.3 ms"),
    ):  # fmt: skip
        total = {**profile["total_ms"], "median": median}
        line = lw.TimingLine(profile={**profile, "total_ms": total, "step_ms": step})
        assert f">{text}<" in line.static_svg()


def test_a_table_without_rows_is_left_out() -> None:
    assert lw.TransitionMatrix(profile={"layers": []}).static_html() == ""


@pytest.mark.browser
def test_a_type_is_named_in_its_own_bar_or_not_at_all(chromium: Any) -> None:
    page = chromium.new_page()
    profile = samples.profile()
    row = profile["layers"][0]
    for share in (10, 14, 18, 22, 26, 30):
        layers = [{**row, "name": str(i), "type": name, "median_ms": ms} for i, (name, ms) in
                  enumerate([("Depthwise conv", share), ("Conv 1×1", 100 - share)])]  # fmt: skip
        made = {**profile, "layers": layers, "sum_ms": 100, "total_ms": {"median": 100}}
        page.set_content(lw.TimingLine(profile=made).static_svg())
        cut = page.evaluate(
            "() => [...document.querySelectorAll('text')].filter((t) => / %$/.test(t.textContent))"
            ".filter((t) => { const bar = t.previousElementSibling.getBoundingClientRect();"
            " return t.getBoundingClientRect().right > bar.right; }).map((t) => t.textContent)"
        )
        assert cut == []
    page.close()
