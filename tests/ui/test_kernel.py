"""A kernel that restarts: nothing looks alive that is not."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from tests.conftest import ROOT

pytestmark = [pytest.mark.browser, pytest.mark.cpu]

START = """import lite_workbench as lw
from lite_workbench.steps import RunStep
session = lw.open("digits.onnx")
session.convert(targets=["x86"])
workbench = lw.Workbench(session, step="Profile")
workbench"""
RESTART = "() => window.jupyterapp.shell.currentWidget.sessionContext.restartKernel()"
#: What still turns, and what can still be pressed though nobody would hear of it.
ALIVE = """() => [...document.querySelectorAll('.lite .spin, .lite [data-action], .lite select')]
  .filter((e) => e.getClientRects().length
    && (e.matches('.spin') ? getComputedStyle(e).animationName !== 'none' : !e.disabled))
  .map((e) => e.outerHTML)"""


def test_after_a_restart_nothing_turns_and_nothing_can_be_pressed(lab: Any, server: Any) -> None:
    shutil.copy(ROOT / "notebooks" / "models" / "digits.onnx", server("/").root)
    page = lab([START, "RunStep(session)"])
    assert page.run_all()
    find = page.page.locator
    find(".lite-table tbody tr[data-k]").first.wait_for()
    page.run_code("job = session.start('Long', lambda: session.profile('x86', 10**6), 'Profile')")
    find(".lite-running .spin").first.wait_for()
    assert page.page.evaluate(ALIVE), "the test sees what is alive"
    page.page.evaluate(RESTART)
    find(".lite-top", has_text="The kernel was restarted").wait_for()
    find(".lite-header .lostline").wait_for()  # of the step that stands alone
    find(".lostline").nth(1).wait_for()
    assert find(".lostline").count() == 2
    find(".lite-running", has_text="stopped").first.wait_for()
    page.page.wait_for_function(f"() => ({ALIVE})().length === 0")
    page.shot("kernel-restarted")
    find(".lite-table tbody tr[data-k]").nth(1).click()
    find(".lite-table tbody tr.sel[data-k]").wait_for()  # what was measured can still be looked at


def test_restore_brings_the_work_back_in_a_cell_of_its_own(lab: Any, server: Any) -> None:
    shutil.copy(ROOT / "notebooks" / "models" / "digits.onnx", server("/").root)
    page = lab([START])
    assert page.run_all()
    find = page.page.locator
    page.run_code("session.profile('x86', 3); session.compare('x86', 'reference')")
    total = page.run_code("print(session.profiles['x86'].total_ms['median'])")
    page.step("Compare")
    page.prints("print('Compare' in workbench.top.restore)", "True")  # kept a few seconds later
    assert find("[data-restore]").count() == 0, "nothing to restore while the kernel runs"
    page.page.evaluate(RESTART)
    # the one button that works is no paler than one that does
    find("[data-restore]").wait_for()
    assert find("[data-restore]").evaluate("(e) => getComputedStyle(e).opacity") == "1"
    find("[data-restore]").click()
    find(".lite-step-Compare .verdict .what", has_text="agree").locator("visible=true").nth(
        1
    ).wait_for()
    assert page.run_code("print(session.profiles['x86'].total_ms['median'])") == total
    assert page.run_code("print(workbench.current, session.path)") == "Compare digits.onnx"
    page.shot("kernel-restored")
