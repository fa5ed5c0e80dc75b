"""Nine steps on real models, light and dark, at four widths: nothing overflows or overlaps.

With LITE_TEST_SHOTS=FOLDER a picture of each is kept there, to be looked at.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.ui.steps import STEPS, workbench_cell

pytestmark = [pytest.mark.browser, pytest.mark.hours, pytest.mark.models, pytest.mark.cpu]

MODELS = Path(os.environ.get("LITE_TEST_MODELS", "."))
NAMES = {
    "ssd": "tflite/ssd_mobilenet_v1_coco_quant.tflite",
    "ppocr": "ppocr_v3_det_ch/model.onnx",
    "deeplab": "deeplab_dm05_person/frozen_inference_graph.pb",
    "lprnet": "lprnet_plate_ocr/DERIVED_lprnet.onnx",
    "ultraface": "ultraface_rfb320/version-RFB-320.onnx",
}
#: Width of the window in CSS pixels; at 200 % zoom one of 1440 pixels is 720 wide.
WIDTHS = {"1440": 1440, "1100": 1100, "760": 760, "zoom200": 720}
WORK = """s = workbench.session
size = lambda i, d: d if isinstance(d, int) else 64 if i else 1
shapes = {v.name: [size(i, d) for i, d in enumerate(v.shape)] for v in s.graph.inputs}
if any(list(v.shape) != shapes[v.name] for v in s.graph.inputs):
    workbench.load(lw.Session(s.path, shapes=shapes)); s = workbench.session
s.convert(targets=["x86"])
s.run(backend="x86")
s.profile(backend="x86", runs=2)
s.compare("x86", "reference")"""
#: Sentences and numbers that are cut off, what is wider than its cell or card, and labels that
#: cover one another.
FAULTS = r"""() => {
  const seen = (e) => e.getClientRects().length && getComputedStyle(e).visibility !== 'hidden';
  const all = (q) => [...document.querySelectorAll('.lite-workbench ' + q)].filter(seen);
  const cut = all('.verdict, .verdict *, .lite-header h2, .lite-notice .bd, .nm, .rs, .btn')
    .filter((e) => e.scrollWidth > e.clientWidth + 1 && e.clientWidth)
    .map((e) => `cut off: ${e.textContent.trim().slice(0, 60)}`);
  const frame = document.querySelector('.lite-workbench');
  const wide = frame.scrollWidth > frame.clientWidth + 1 ? ['wider than its cell'] : [];
  // Corners on the screen, so that words along a slanted line are not taken for their upright box.
  const corners = (t) => {
    const b = t.getBBox(), m = t.getScreenCTM(), [x, y] = [b.x + b.width, b.y + b.height];
    return [[b.x, b.y], [x, b.y], [x, y], [b.x, y]]
      .map(([u, v]) => [m.a * u + m.c * v + m.e, m.b * u + m.d * v + m.f]);
  };
  // Apart along a side of p: by all but 2 px of its letters or 4 px of their height.
  const apartAlong = (p, q) => [[p[1], 2], [p[3], 4]].some(([[u, v], least]) => {
    const [x, y] = p[0], length = Math.hypot(u - x, v - y) || 1;
    const [a, b] = [p, q].map((r) => r.map(([g, h]) => (g * (u - x) + h * (v - y)) / length));
    const [end, begin] = [Math.min(Math.max(...a), Math.max(...b)),
                          Math.max(Math.min(...a), Math.min(...b))];
    return end - begin <= least;
  });
  const over = all('svg.chart').flatMap((chart) => {
    const boxes = [...chart.querySelectorAll('text')].filter((t) => t.textContent.trim())
      .map((t) => [t.textContent.trim(), corners(t)]);
    return boxes.flatMap(([a, p], i) => boxes.slice(i + 1)
      .filter(([, q]) => !apartAlong(p, q) && !apartAlong(q, p))
      .map(([b]) => `overlap: ${a.slice(0, 30)} | ${b.slice(0, 30)}`));
  });
  const sideways = all('.tw').filter((e) => e.scrollWidth > e.clientWidth + 1)
    .map((e) => `scrolls sideways: ${e.textContent.trim().slice(0, 40)}`);
  const numbers = all('svg text').map((t) => t.textContent.trim())
    .filter((t) => /^[−\d.]+…$/.test(t)).map((t) => `half a number: ${t}`);
  return [...wide, ...cut, ...over, ...sideways, ...numbers];
}"""
TABS = """() => [...document.querySelectorAll('.lite-workbench [data-tab]')]
  .filter((e) => e.getClientRects().length).map((e) => e.dataset.tab)"""


@pytest.mark.parametrize("name", NAMES)
def test_every_step_at_every_width(lab: Any, server: Any, name: str) -> None:
    source = MODELS / NAMES[name]
    shutil.copy(source, server("/").root / f"{name}{source.suffix}")
    lab_page = lab([workbench_cell(f"{name}{source.suffix}")])
    assert lab_page.run_all()
    assert lab_page.run_code(WORK) == ""
    page = lab_page.page
    faults: dict[str, str] = {}  # fault → where it was seen first
    for theme in ("light", "dark"):
        lab_page.theme(dark=theme == "dark")
        for label, width in WIDTHS.items():
            page.set_viewport_size({"width": width, "height": 1600})
            for step in STEPS:
                lab_page.step(step)
                page.locator(f".lite-step-{step} .lite-header h2").wait_for()
                page.wait_for_timeout(400)  # widgets fit their charts to the new width
                for tab in page.evaluate(TABS) or [""]:
                    if "Netron" in tab:
                        continue
                    if tab:
                        page.locator(f"[data-tab='{tab}'] >> visible=true").click()
                        page.wait_for_timeout(100)
                    lab_page.shot("-".join(filter(None, (name, step, tab, theme, label))))
                    for fault in page.evaluate(FAULTS):
                        faults.setdefault(f"{step} {tab}: {fault}", f"{theme} {label}")
    assert not faults, "\n".join(f"{where} {fault}" for fault, where in faults.items())


def test_open_sizes_are_fixed_by_a_click_and_an_image_is_segmented(lab: Any, server: Any) -> None:
    """DeepLab's frozen graph leaves height and width open, and takes bytes."""
    shutil.copy(MODELS / NAMES["deeplab"], server("/").root / "open.pb")
    lab_page = lab([workbench_cell("open.pb")])
    assert lab_page.run_all()
    find = lab_page.page.locator
    lab_page.step("Check")
    lab_page.page.click(".lite-notice [data-action=sizes] >> visible=true")
    find("button[data-step=Model] .rs", has_text="224").wait_for()
    lab_page.run_code("workbench.session.convert(targets=['x86'])")
    lab_page.step("Run")
    with lab_page.page.expect_file_chooser() as chooser:
        find("button, label", has_text="Drop or choose an image").locator("visible=true").click()
    chooser.value.set_files(MODELS / "images" / "human.jpg")
    find(".lite-result", has_text="of the image").locator("visible=true").first.wait_for()
    lab_page.shot("deeplab-mask")
