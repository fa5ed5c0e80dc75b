"""The five-minute story: a receipt is read wrong on OpenCL, and a newcomer finds the layer."""

from __future__ import annotations

import re
import shutil
import time
from typing import Any

import pytest

from tests.conftest import ROOT

MODELS = ROOT / "notebooks" / "models"
pytestmark = [pytest.mark.browser, pytest.mark.opencl, pytest.mark.cpu]

START = """import lite_workbench as lw
session = lw.open("ocr.onnx")
session.convert(targets=["x86", "arm", "opencl"])
session.plant_fault("b3/dw", "drop_last_column")
workbench = lw.Workbench(session)
workbench"""


@pytest.mark.parametrize(
    "dark", [False, pytest.param(True, marks=pytest.mark.hours)], ids=["light", "dark"]
)
def test_story(lab: Any, server: Any, dark: bool) -> None:
    shutil.copy(MODELS / "ocr.onnx", server("/").root)
    look = "dark" if dark else "light"
    page = lab([START], dark=dark)
    assert page.run_all()
    began = time.monotonic()
    find = page.page.locator

    # Run: drop a receipt
    page.step("Run")
    with page.page.expect_file_chooser() as chooser:
        find("button, label", has_text="Drop or choose an image").locator("visible=true").click()
    chooser.value.set_files(MODELS / "ocr_total.png")
    both = "TOTAL 128.40 and TOTAL 128.46"
    notice = find(".lite-notice", has_text="outputs differ")
    notice.filter(has_text=both).locator("visible=true").first.wait_for()
    page.shot(f"story-run-{look}")

    # Compare: one sentence names the layer
    page.page.click("[data-action=compare] >> text=Compare x86 and OpenCL")
    find(".verdict .what", has_text="goes wrong at b3/dw").wait_for()
    find("button[data-step=Compare] .rs").get_by_text("1 failing layer", exact=True).wait_for()

    # Evidence: the pane is open, all of it is in the last column
    find("[data-part=map]", has_text="column 159 (the last)").wait_for()
    page.prints("print(session.selected)", "['b3/dw']")
    page.shot(f"story-compare-{look}")

    # Doubt: the tolerance, both ways; a victim is right by itself
    slider = find("[data-range=tolerance]").locator("visible=true").first
    usual = slider.get_attribute("aria-valuetext")
    slider.focus()
    page.page.keyboard.press("End")
    find(".lite-errors svg text", has_text="no layer above it").wait_for()
    page.page.keyboard.press("Home")
    find(".lite-errors svg text", has_text=re.compile(r"\d+ of \d+ layers above it")).wait_for()
    page.page.click(".lite-errors [data-action=usual]")
    find(".verdict .what", has_text="goes wrong at b3/dw").wait_for()
    find(f"[data-range=tolerance][aria-valuetext='{usual}']").locator("visible=true").wait_for()
    victim = find(".lite-errors [data-k='b4/project'] .hit").locator("visible=true").first
    victim.click(force=True, position={"x": 2, "y": 4})  # above the line of tolerance
    find(".lite-difference", has_text="b4/project").wait_for()
    assert (
        float(
            page.run_code(
                "d = session.comparisons['x86', 'opencl']\n"
                "print(next(x for x in d.layers if x.name == 'b4/project').isolated['rel_l2'])"
            )
        )
        < 1e-5
    )
    page.shot(f"story-victim-{look}")

    # Fix
    page.page.click("[data-action=run_on_a]")
    find(".verdict .what", has_text="agree on all").wait_for()
    find("button[data-step=Compare] .rs", has_text="all agree").wait_for()
    told = find(".lite-notice", has_text="runs on x86").locator("visible=true").inner_text()
    assert re.search(r"[+−]\d+\.\d\d ± \d+\.\d\d ms", told)
    page.shot(f"story-fixed-{look}")
    page.step("Deploy")
    find(".lite-notice", has_text="b3/dw runs on x86").locator("visible=true").wait_for()
    page.shot(f"story-deploy-{look}")
    code = page.run_code("print('\\n'.join(session.code))")
    assert "session.override('b3/dw', 'x86')" in code
    assert "diff = session.compare('x86', 'opencl')" in code
    assert time.monotonic() - began < 300
