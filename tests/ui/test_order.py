"""What a person does is done in that order, however late the kernel's answers come."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from tests.conftest import ROOT

pytestmark = [pytest.mark.browser, pytest.mark.cpu]

START = """import lite_workbench as lw
workbench = lw.Workbench("digits.onnx", step="Target")
workbench"""
#: Keeps back what the kernel says until `window.release()`.
HOLD = """() => {
  const socket = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel._ws;
  const hear = socket.onmessage, held = [];
  socket.onmessage = (event) => held.push(event);
  window.release = () => { socket.onmessage = hear; held.forEach((event) => hear(event)); };
}"""


def test_a_button_uses_the_ticks_that_were_set_before_it(lab: Any, server: Any) -> None:
    shutil.copy(ROOT / "notebooks" / "models" / "digits.onnx", server("/").root)
    lab_page = lab([START])
    assert lab_page.run_all()
    page = lab_page.page
    tick = "[data-card={}] >> visible=true"
    page.locator(tick.format("x86")).wait_for()
    lab_page.run_code("workbench._steps['Target'].cards.chosen = ['x86', 'arm']")
    page.locator("[data-action=use]", has_text="2 targets").wait_for()
    page.evaluate(HOLD)
    page.locator(tick.format("x86")).click()  # away
    page.locator(tick.format("arm")).click()  # away
    page.locator(tick.format("x86")).click()  # back
    page.locator(".lite-header [data-action=use] >> visible=true").click()
    page.wait_for_timeout(1000)  # the kernel has heard all that left
    page.evaluate("() => window.release()")
    page.locator("button[data-step=Convert][aria-current=step]").wait_for()
    lab_page.prints("print(*workbench.session.targets)", "x86")
