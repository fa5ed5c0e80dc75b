"""axe-core over every step and tab, in light and dark: no serious or critical fault."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.ui.steps import STEPS, workbench_cell

MODELS = ROOT / "notebooks" / "models"
AXE = ROOT / "widgets" / "node_modules" / "axe-core" / "axe.min.js"
pytestmark = [pytest.mark.browser, pytest.mark.cpu]

START = workbench_cell("ocr.onnx")
WORK = """s = workbench.session
s.convert(targets=["x86"])
s.run("ocr_item.png", backend="x86")
s.profile(backend="x86", runs=2)
s.compare("x86", "reference")
s.quantize("ocr_held_back.npz", limit=8)
s.override(s.base_model.graph.nodes[0].name, precision="fp32")"""
#: Faults of what a person sees, each as one line with the element and what axe says about it, by
#: all of axe's rules or those with one of these tags.
FAULTS = """async (tags) => {
  const { violations } = await axe.run('.lite-workbench',
    { resultTypes: ['violations'], ...(tags.length ? { runOnly: tags } : {}) });
  return violations.filter((v) => ['serious', 'critical'].includes(v.impact)).flatMap((v) =>
    v.nodes.map((n) => `${v.id}: ${n.html.slice(0, 160)} ${n.failureSummary.split('\\n')[1]}`));
}"""
#: The tabs of the step on show.
TABS = """() => [...document.querySelectorAll('.lite-workbench [data-tab]')]
  .filter((e) => e.getClientRects().length).map((e) => e.dataset.tab)"""

DRAWN = """() => document.querySelector('iframe[title^=Netron]')?.contentDocument
  ?.querySelectorAll('.node').length > 100"""


def test_no_serious_fault_on_any_step(lab: Any, server: Any) -> None:
    for name in ("ocr.onnx", "ocr_item.png", "ocr_held_back.npz"):
        shutil.copy(MODELS / name, server("/").root)
    lab_page = lab([START])
    assert lab_page.run_all()
    assert lab_page.run_code(WORK) == ""
    page = lab_page.page
    page.add_script_tag(path=AXE)
    found: dict[str, str] = {}  # fault → where it was seen first
    # What the themes share is looked at once.
    for theme, tags in (("light", []), ("dark", ["cat.color"])):
        lab_page.theme(dark=theme == "dark")
        for step in STEPS:
            lab_page.step(step)
            page.locator(f".lite-step-{step} .lite-header h2").wait_for()
            for tab in page.evaluate(TABS) or [""]:
                if tab:
                    page.locator(f"[data-tab='{tab}'] >> visible=true").click()
                if "Netron" in tab:  # half drawn and hidden, it tells the console about NaN
                    page.wait_for_function(DRAWN)
                for fault in page.evaluate(FAULTS, tags):
                    found.setdefault(fault, f"{theme} {step} {tab}")
    assert not found, "\n".join(f"{where}: {fault}" for fault, where in found.items())
