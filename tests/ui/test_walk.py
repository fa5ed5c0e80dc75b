"""The whole walk on the line recogniser in a real JupyterLab, also behind a proxy's base URL."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from tests.conftest import ROOT

MODELS = ROOT / "notebooks" / "models"
pytestmark = [pytest.mark.browser, pytest.mark.opencl, pytest.mark.cpu]

START = """import lite_workbench as lw
workbench = lw.Workbench(lw.open("digits.onnx"))
workbench"""
#: Keeps back what the kernel says until `window.release()`.
HOLD = """() => {
  const socket = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel._ws;
  const hear = socket.onmessage, held = [];
  socket.onmessage = (event) => held.push(event);
  window.release = () => { socket.onmessage = hear; held.forEach((event) => hear(event)); };
}"""
#: The copy before the first layer takes longest, as it can on a busy machine.
SLOW_COPY = """from dataclasses import replace
import lite_engine.profile as engine
measured = engine.profile
def profile(*args, **options):
    made = measured(*args, **options)
    rows = [replace(x, median_ms=99.0) if x.overhead else x for x in made.layers]
    return replace(made, layers=rows)
engine.profile = profile"""

#: The chart and the row of a layer, from the top of one to the bottom of the other.
IN_ONE_VIEW = """(layer) => {
  const edges = (selector) => document.querySelector(selector)?.getBoundingClientRect();
  const chart = edges('.lite-latency'), row = edges(`.lite-table tr.sel[data-k='${layer}']`);
  return Boolean(chart && row) && row.bottom - chart.top < 780;
}"""


@pytest.mark.parametrize(
    ("base_url", "dark"),
    [
        # The root in light is where test_story.py goes through the steps.
        pytest.param("/", False, marks=pytest.mark.hours, id="root-light"),
        pytest.param("/user/ada/", True, marks=pytest.mark.sweep, id="user-dark"),
    ],
)
def test_walk(lab: Any, server: Any, base_url: str, dark: bool) -> None:
    root = server(base_url).root
    shutil.copy(MODELS / "digits.onnx", root)
    shutil.copy(MODELS / "ocr_held_back.npz", root)
    page = lab([START], base_url=base_url, dark=dark)
    assert page.run_all()
    find = page.page.locator
    session = "workbench.session"
    look = "dark" if dark else "light"

    # upload another model
    with page.page.expect_file_chooser() as chooser:
        find("text=Drop or choose another model").first.click()
    chooser.value.set_files(MODELS / "ocr.onnx")
    find(".lite-top", has_text="ocr.onnx").wait_for()
    find(".lite-facts", has_text="236").locator("visible=true").wait_for()
    find("[data-tab='File in Netron']").first.click()
    netron = page.page.frame_locator("iframe[title^=Netron]")
    netron.locator("g.node, .node").first.wait_for()
    page.page.wait_for_function(
        "() => document.querySelector('iframe[title^=Netron]').contentDocument"
        ".querySelectorAll('.node').length > 100"
    )
    page.shot(f"walk-model-{look}")

    page.step("Check")
    find("text=GlobalAveragePool").locator("visible=true").first.wait_for()
    page.shot(f"walk-check-{look}")

    # three targets: ticks that were set before the button count, however late the kernel answers
    page.step("Target")
    ticks = [find(f".lite-step-Target [data-card={target}]") for target in ("arm", "opencl")]
    ticks[0].wait_for()
    page.page.evaluate(HOLD)
    for tick in ticks * 2:  # away and back
        tick.click()
    page.page.click("[data-action=use]")
    page.page.wait_for_timeout(1000)  # the kernel has heard all that left
    page.page.evaluate("() => window.release()")
    find("button[data-step=Convert] .rs", has_text="57 layers").wait_for()
    assert page.run_code(f"print({session}.targets)") == "['x86', 'opencl', 'arm']"
    find("text=fuse-conv-batch-norm").locator("visible=true").first.wait_for()
    page.shot(f"walk-convert-{look}")

    # run on an image
    page.step("Run")
    with page.page.expect_file_chooser() as chooser:
        find("button, label", has_text="Drop or choose an image").locator("visible=true").click()
    chooser.value.set_files(MODELS / "ocr_item.png")
    find(".lite-notice", has_text="outputs agree").locator("visible=true").first.wait_for()
    assert page.run_code(f"print({session}.runs['opencl'].text)") == "COFFEE 3.20"
    page.shot(f"walk-run-{look}")

    # profile; the slowest layer is selected everywhere, and after a click another
    assert page.run_code(SLOW_COPY) == ""
    page.step("Profile")
    find(".lite-latency [data-k='b5/dw']").wait_for()
    slowest, second = page.run_code(
        f"rows = [x for x in {session}.profiles['x86'].layers if not x.overhead]\n"
        "print(*(x.name for x in sorted(rows, key=lambda x: -x.median_ms)[:2]))"
    ).split()
    for layer in (slowest, second):
        if layer == second:
            find(f".lite-latency g[data-k='{layer}']").click()
        find(f".lite-table tr.sel[data-k='{layer}']").wait_for()
        find(f".lite-graph g.sel[data-k='{layer}']").locator("visible=true").first.wait_for()
        find(".lite-inspector", has_text=layer).wait_for()
        page.prints(f"print({session}.selection['name'].tolist())", f"['{layer}']")
        # the bar and the row of the selection are in one view, once the table has scrolled to it
        page.page.wait_for_function(IN_ONE_VIEW, arg=layer)
    page.shot(f"walk-profile-{look}")

    # a long job ends in the top bar
    page.run_code(
        f"job = {session}.start('Long', lambda: {session}.profile('x86', 10**5)); print(job.state)"
    )
    page.page.click(".lite-top [data-action=cancel]")
    find(".lite-top [data-action=cancel]").wait_for(state="detached")
    page.prints("print(job.state)", "cancelled")

    # compare
    page.step("Compare")
    find(".verdict .what", has_text="agree on all").wait_for()
    page.shot(f"walk-compare-{look}")

    # quantize
    page.step("Quantize")
    page.page.click(".lite-header [data-action=run] >> visible=true")
    find("button[data-step=Quantize] .rs", has_text="dB").wait_for()
    find(".lite-sensitivity", has_text="Which layers lose accuracy?").wait_for()
    page.shot(f"walk-quantize-{look}")

    # export
    page.step("Deploy")
    page.page.click("[data-action=write]")
    find(".lite-notice", has_text="Wrote").locator("visible=true").wait_for()
    assert (root / "ocr_bundle" / "ocr.lite").stat().st_size > 100_000
    page.shot(f"walk-deploy-{look}")
    page.page.click(".lite-code [data-action=export]")
    find(".lite-top", has_text="ocr_walk.ipynb").wait_for()
    assert "session.profile" in (root / "ocr_walk.ipynb").read_text()
