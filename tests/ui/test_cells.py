"""The code of the walk, as cells of the notebook and as a notebook of its own: both run."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.ui.steps import workbench_cell

MODELS = ROOT / "notebooks" / "models"
pytestmark = [pytest.mark.browser, pytest.mark.cpu]

START = workbench_cell("digits.onnx")
SOURCES = """() => window.jupyterapp.shell.currentWidget.content.widgets
  .map((cell) => cell.model.sharedModel.getSource())"""
ERRORS = """() => window.jupyterapp.shell.currentWidget.content.widgets
  .flatMap((cell) => cell.model.outputs?.toJSON() || [])
  .filter((output) => output.output_type === 'error').map((output) => output.evalue)"""
PICTURE = """(text) => window.jupyterapp.shell.currentWidget.content.widgets
  .some((cell) => (cell.model.outputs?.toJSON() || [])
    .some((output) => output.data?.['text/html']?.includes(text)))"""
#: The first widget's output again, as a saved notebook has it after its kernel is gone.
DEAD = """() => {
  const cells = window.jupyterapp.shell.currentWidget.content.widgets;
  const view = 'application/vnd.jupyter.widget-view+json';
  const outputs = cells[0].model.outputs;
  const saved = outputs.toJSON().find((output) => output.data?.[view]);
  saved.data[view] = { ...saved.data[view], model_id: 'gone' };
  outputs.add(saved);
}"""


def test_insert_as_cells_and_export_notebook(lab: Any, server: Any) -> None:
    root = server("/").root
    for name in ("digits.onnx", "digits.png", "digits_held_back.npz"):
        shutil.copy(MODELS / name, root)
    page = lab([START])
    assert page.run_all()
    find = page.page.locator
    find(".lite-top", has_text="digits.onnx").wait_for()
    page.run_code(
        "s = workbench.session\n"
        "s.convert(targets=['x86'])\n"
        "s.run('digits.png', backend='x86')\n"
        "s.quantize('digits_held_back.npz', limit=12)\n"
        "s.override(s.base_model.graph.nodes[0].name, precision='fp32')\n"
        "s.profile(backend='x86', runs=2); s.compare('x86', 'reference')\n"
        "s.export('digits_walk.lite')"
    )
    count = page.page.evaluate(SOURCES)
    find(".lite-code code", has_text="session.export").wait_for()
    find(".lite-code [data-action=insert]").click()
    find(".lite-top", has_text="cells inserted below").wait_for()
    sources = page.page.evaluate(SOURCES)
    assert sources[0] == count[0] and len(sources) >= 8
    assert sources[1].startswith("import lite_workbench as lw\nsession = lw.open('digits.onnx')")
    assert "precision='fp32'" in "\n".join(sources)
    page.shot("cells-inserted")
    page.run_code("del workbench, s")
    assert page.run_all(), page.page.evaluate(ERRORS)
    assert page.run_code("print(session.version, len(diff.layers) > 3)") == "custom True"
    assert page.page.evaluate(ERRORS) == []

    # saved is the picture of the step that is open; it is shown when the widget is gone
    page.step("Check")
    page.page.wait_for_function(PICTURE, arg="Does it convert?")
    find(".lite-stepper").locator("visible=true").wait_for()  # the widget itself stays on show
    page.page.evaluate(DEAD)
    still = find(".jp-OutputArea-child", has=find("em", has_text="no running kernel"))
    for text in ("Does it convert?", "all supported", "HardSwish"):
        still.get_by_text(text, exact=True).wait_for()
    assert all("model not found" in error for error in page.errors)
    page.errors.clear()  # ipywidgets told the console what it did not find

    # the exported notebook, opened and run from its first cell in a kernel of its own
    find(".lite-code [data-action=export]").first.click()
    find(".lite-top", has_text="digits_walk.ipynb").wait_for()
    page.run_code("session.notebook('digits_walk')")
    page.goto("digits_walk.ipynb")
    assert page.run_all(), page.page.evaluate(ERRORS)
    assert page.run_code("print(session.version, diff.candidate)") == "custom reference"
