"""The keys stay where a person left them: work that begins or a form that closes takes none."""

from __future__ import annotations

import shutil
from typing import Any

import onnx
import pytest
from onnx import helper

from tests.conftest import ROOT

pytestmark = [pytest.mark.browser, pytest.mark.cpu]

#: Runs wait until `go` is set.
START = """import threading
import lite_workbench as lw
session = lw.open("digits.onnx")
session.convert(targets=["x86"])
go, begun, run = threading.Event(), [], session.run
def held(*given):
    begun.append(given)
    go.wait(60)
    return run(*given)
session.run = held
lw.Workbench(session, step="Run")"""
FOCUSED = """() => {
  const e = document.activeElement;
  return e.dataset.action || e.dataset.field || e.tagName;
}"""


def test_keys_stay_where_they_were(lab: Any, server: Any) -> None:
    shutil.copy(ROOT / "notebooks" / "models" / "digits.onnx", server("/").root)
    page = lab([START])
    assert page.run_all()
    step = page.page.locator(".lite-step-Run")
    keys = page.page.keyboard
    run = step.locator(".lite-header [data-action=run]")
    run.focus()
    keys.press("Enter")
    step.locator(".lite-running li").first.wait_for()
    run.and_(page.page.locator("[aria-disabled=true]")).wait_for()
    assert page.page.evaluate(FOCUSED) == "run"
    assert "still running" in run.get_attribute("title")
    keys.press("Enter")  # it cannot be pressed twice
    page.run_code("go.set()")
    step.locator(".lite-notice", has_text="outputs agree").wait_for()
    step.locator(".lite-running li").first.wait_for(state="detached")
    assert page.page.evaluate(FOCUSED) == "run"
    page.prints("print(len(begun))", "2")  # one run on each side

    # a form is closed by Escape, and the keys go back to where they came from
    inputs = step.locator(".lite-header [data-action=inputs]")
    inputs.focus()
    keys.press("Enter")
    form = step.locator(".lite-form [data-field='seed']")
    form.wait_for()
    while page.page.evaluate(FOCUSED) != "seed":
        keys.press("Tab")
    keys.press("Escape")
    form.wait_for(state="hidden")
    assert page.page.evaluate(FOCUSED) != "BODY"


def test_keys_stay_in_a_workbench_that_reads_its_model_again(lab: Any, server: Any) -> None:
    """What was pressed is gone with the step that it stood in."""
    ports = [helper.make_tensor_value_info(name, 1, ["batch", 4]) for name in "xy"]
    node = helper.make_node("Relu", ["x"], ["y"], "relu")
    graph = helper.make_graph([node], "g", ports[:1], ports[1:])
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    onnx.save(model, server("/").root / "open.onnx")
    page = lab(["import lite_workbench as lw\nlw.Workbench('open.onnx', step='Check')"])
    assert page.run_all()
    fix = page.page.locator(".lite-step-Check [data-action=sizes]")
    fix.focus()
    page.page.keyboard.press("Enter")
    fix.wait_for(state="detached")
    page.page.wait_for_function("() => document.activeElement.dataset.step === 'Check'")
    page.page.keyboard.press("ArrowRight")
    page.page.wait_for_function("() => document.activeElement.dataset.step === 'Target'")
