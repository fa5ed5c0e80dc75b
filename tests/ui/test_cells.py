"""The code of the walk, as cells of the notebook and as a notebook of its own: both run."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from tests.conftest import ROOT

MODELS = ROOT / "notebooks" / "models"
pytestmark = [pytest.mark.browser, pytest.mark.cpu]

START = """import lite_workbench as lw
workbench = lw.Workbench("digits.onnx")
workbench"""
SOURCES = """() => window.jupyterapp.shell.currentWidget.content.widgets
  .map((cell) => cell.model.sharedModel.getSource())"""
ERRORS = """() => window.jupyterapp.shell.currentWidget.content.widgets
  .flatMap((cell) => cell.model.outputs?.toJSON() || [])
  .filter((output) => output.output_type === 'error').map((output) => output.evalue)"""


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
        "s.override(s.float_model.graph.nodes[0].name, precision='fp32')\n"
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

    # the exported notebook, opened and run from its first cell in a kernel of its own
    find(".lite-code [data-action=export]").first.click()
    find(".lite-top", has_text="digits_walk.ipynb").wait_for()
    page.run_code("session.notebook('digits_walk')")
    page.goto("digits_walk.ipynb")
    assert page.run_all(), page.page.evaluate(ERRORS)
    assert page.run_code("print(session.version, diff.b)") == "custom reference"
