"""The Workbench in Notebook 7: it is drawn, heard, and writes cells as in JupyterLab."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.ui.lab_page import LabPage
from tests.ui.lab_server import Server

pytestmark = [pytest.mark.browser, pytest.mark.hours, pytest.mark.cpu]

START = """import lite_workbench as lw
session = lw.open("digits.onnx")
session.convert(targets=["x86"])
session.profile("x86", runs=2)
workbench = lw.Workbench(session, step="Profile")
workbench"""
#: Notebook's own error, which a page without our extension has, too.
OWN = ("Cannot read properties of undefined (reading 'schema')",)
CELLS = """() => window.jupyterapp.shell.currentWidget.content.widgets
  .map((cell) => cell.model.sharedModel.getSource())"""
PICTURE = """() => window.jupyterapp.shell.currentWidget.content.widgets
  .some((cell) => (cell.model.outputs?.toJSON() || [])
    .some((output) => output.data?.['text/html']?.includes('What is in the file?')))"""


@pytest.fixture
def notebook(tmp_path: Path, chromium: Any) -> Iterator[LabPage]:
    """The notebook with START, in Notebook 7."""
    pytest.importorskip("notebook", minversion="7", reason="pip install notebook")
    server = Server(tmp_path, "/", "notebook")
    try:
        server.wait()
        shutil.copy(ROOT / "notebooks" / "models" / "digits.onnx", server.root)
        page = LabPage(chromium, server, dark=False)
        page.open([START])
        yield page
        page.shot("notebook-7")
        page.close()
        assert page.outside == [], "a request left the machine"
        assert [e for e in page.errors if e not in OWN] == [], "the console has errors"
    finally:
        server.close()


def test_a_widget_is_drawn_and_heard(notebook: LabPage) -> None:
    find = notebook.page.locator
    assert notebook.run_all()
    row = find(".lite-table tbody tr[data-k]").nth(1)
    row.click()
    layer = row.get_attribute("data-k")
    notebook.prints("print(session.selected)", f"[{layer!r}]")
    find(f".lite-graph g.sel[data-k='{layer}']").locator("visible=true").first.wait_for()

    for _ in range(2):  # in command mode, d d deletes the cell and b inserts one
        row.press("d")
    row.press("b")
    assert notebook.page.evaluate(CELLS) == [START]

    notebook.step("Model")
    find(".lite-facts").locator("visible=true").first.wait_for()
    notebook.page.wait_for_function(PICTURE)  # what a saved notebook shows without a kernel
    find(".lite-code [data-action=insert]").click()
    find(".lite-top", has_text="cells inserted below").wait_for()
    inserted = notebook.page.evaluate(CELLS)
    assert inserted[0] == START and "session.profile(backend='x86', runs=2)" in "\n".join(inserted)

    notebook.theme(dark=True)
    ink = "getComputedStyle(document.querySelector('.lite-header h2')).color.match(/\\d+/g)"
    notebook.page.wait_for_function(f"() => Math.min(...{ink}.slice(0, 3)) > 128")
