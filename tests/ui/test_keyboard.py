"""The whole walk without a mouse: Tab, Enter, Space, Escape and arrows alone. What has the focus is
always in view and has a ring, Tab leads in and out again, and no key is JupyterLab's."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.ui.steps import STEPS, workbench_cell

MODELS = ROOT / "notebooks" / "models"
pytestmark = [pytest.mark.browser, pytest.mark.cpu]

START = workbench_cell("ocr.onnx")
WORK = """s = workbench.session
s.convert(targets=["x86"])
s.run(backend="x86")
s.profile(backend="x86", runs=2)
s.compare("x86", "reference")"""
#: Of what has the focus: whether it is in the Workbench, what it is, and what is wrong with it.
FOCUSED = """() => {
  const e = document.activeElement, style = getComputedStyle(e), box = e.getBoundingClientRect();
  const last = e.matches('[role=slider]') && e.querySelector('rect:last-child');
  const drawn = last && parseFloat(getComputedStyle(last).strokeWidth) >= 2;
  const ring = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2;
  const wrong = [];
  if (!e.matches(':focus-visible') || !(ring || drawn)) wrong.push('no ring');
  if (box.bottom < 1 || box.top > innerHeight - 1 || box.right < 1 || box.left > innerWidth - 1
      || !e.checkVisibility({ visibilityProperty: true })) wrong.push('out of view');
  return { inside: Boolean(e.closest('.lite-workbench')), wrong,
           name: e.outerHTML.slice(0, 200), body: e === document.body };
}"""
CELLS = """() => window.jupyterapp.shell.currentWidget.content.widgets
  .map((cell) => cell.model.type)"""
#: Keys of JupyterLab's command mode that would insert, change, cut or collapse a cell.
SHORTCUTS = ("b", "m", "x", "h")


class Keys:
    """A person at a keyboard."""

    def __init__(self, lab_page: Any) -> None:
        self.page = lab_page.page
        self.reached: set[str] = set()

    def press(self, key: str) -> dict[str, Any]:
        self.page.keyboard.press(key)
        return self.page.evaluate(FOCUSED)

    def tab(self, key: str = "Tab") -> dict[str, Any]:
        """Goes on; what has the focus now is seen to have it."""
        at = self.press(key)
        if at["inside"]:
            assert not at["wrong"], (at["wrong"], at["name"])
            self.reached.add(at["name"])
        return at

    def to(self, selector: str, key: str = "Tab") -> None:
        """Goes on until an element has the focus; it can be reached."""
        for _ in range(250):
            self.tab(key)
            if self.page.evaluate("(q) => document.activeElement.matches(q)", selector):
                return
        raise AssertionError(f"{key} does not lead to {selector}")

    def heading(self, step: str) -> None:
        """The step is shown, the focus is on, and what would be shortcuts changes nothing."""
        self.page.locator(f".lite-step-{step} .lite-header h2").wait_for()
        at = self.page.evaluate(FOCUSED)
        assert at["inside"] and not at["body"], f"{step}: the focus is lost"
        for key in SHORTCUTS:
            self.page.keyboard.press(key)


@pytest.mark.parametrize(
    "dark", [False, pytest.param(True, marks=pytest.mark.hours)], ids=["light", "dark"]
)
def test_the_walk_by_keyboard(lab: Any, server: Any, dark: bool) -> None:
    for name in ("ocr.onnx", "ocr_item.png", "ocr_held_back.npz"):
        shutil.copy(MODELS / name, server("/").root)
    lab_page = lab([START, "2"], dark=dark)
    assert lab_page.run_all()
    find, keys = lab_page.page.locator, Keys(lab_page)
    find(".lite-step-Model .lite-header h2").wait_for()

    # from JupyterLab into the Workbench, and on by the buttons that lead to the next step
    keys.to("[data-step=Model]")
    keys.to(".lite-step-Model [data-action=next]")
    keys.press("Enter")
    keys.heading("Check")
    keys.to(".lite-step-Check [data-action=next]")
    keys.press("Enter")

    keys.heading("Target")
    for target in ("opencl", "arm"):
        keys.to(f".lite-step-Target [data-card={target}]")
        keys.press("Space")
        # A tick that follows another one waits in the page until the kernel has answered that one.
        count = "2 targets" if target == "opencl" else "1 target"
        find("button", has_text=f"Use {count}").wait_for()
    keys.to(".lite-step-Target [data-action=use]", "Shift+Tab")
    keys.press("Enter")
    find("button[data-step=Convert] .rs", has_text="layers").wait_for()
    assert lab_page.run_code("print(workbench.session.targets)") == "['x86']"

    keys.heading("Convert")
    keys.to(".lite-step-Convert [data-action=next]")
    keys.press("Enter")
    keys.heading("Run")
    keys.to(".lite-step-Run [data-action=run]")
    keys.press("Enter")
    find("button[data-step=Run] .rs", has_text="backend").wait_for()

    # Quantize by the arrows of the stepper
    keys.to("[data-step=Run]", "Shift+Tab")
    keys.press("ArrowLeft")
    keys.press("Enter")
    keys.heading("Quantize")
    keys.to(".lite-step-Quantize [data-action=run]")
    keys.press("Enter")
    find("button[data-step=Quantize] .rs", has_text="dB").wait_for()

    # Profile: arrows of the chart select the layer in the table
    keys.to("[data-step=Quantize]", "Shift+Tab")
    for _ in range(3):
        keys.press("ArrowRight")
    keys.press("Enter")
    keys.heading("Profile")
    find(".lite-latency [data-k]").first.wait_for()
    keys.to(".lite-latency svg, .lite-latency [tabindex='0']")
    before = lab_page.run_code("print(workbench.session.selected)")
    keys.press("ArrowRight")
    lab_page.page.wait_for_timeout(300)
    assert lab_page.run_code("print(workbench.session.selected)") != before

    # Compare: the tolerance by arrows
    keys.to("[data-step=Profile]", "Shift+Tab")
    keys.press("ArrowRight")
    keys.press("Enter")
    keys.heading("Compare")
    find(".verdict .what", has_text="agree on all").wait_for()
    keys.to("[data-range=tolerance]")
    tolerance = find("[data-range=tolerance]").first
    usual = tolerance.get_attribute("aria-valuetext")
    keys.press("ArrowLeft")
    lab_page.page.wait_for_function(
        "before => document.querySelector('[data-range=tolerance]')"
        ".getAttribute('aria-valuetext') !== before",
        arg=usual,
    )

    # Deploy
    keys.to("[data-step=Compare]", "Shift+Tab")
    keys.press("ArrowRight")
    keys.press("Enter")
    keys.heading("Deploy")
    keys.to("[data-action=write]")
    keys.press("Enter")
    find(".lite-notice", has_text="Wrote").locator("visible=true").wait_for()

    assert lab_page.page.evaluate(CELLS) == ["code", "code"]


@pytest.mark.hours
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_tab_goes_through_every_step_and_out_again(lab: Any, server: Any, dark: bool) -> None:
    shutil.copy(MODELS / "ocr.onnx", server("/").root)
    lab_page = lab([START, "2"], dark=dark)
    assert lab_page.run_all()
    assert lab_page.run_code(WORK) == ""
    keys = Keys(lab_page)
    for step in STEPS:
        lab_page.page.locator(f"button[data-step={step}]").press("Enter")
        keys.heading(step)
        for _ in range(250):
            if not keys.tab()["inside"]:
                break
            if lab_page.page.evaluate("() => !document.activeElement.matches('input, textarea')"):
                for key in SHORTCUTS:
                    lab_page.page.keyboard.press(key)
        else:
            raise AssertionError(f"{step}: Tab does not lead out of the Workbench")
    assert lab_page.page.evaluate(CELLS) == ["code", "code"]
    assert len(keys.reached) > 100
