"""axe-core over the outputs of every lesson: in JupyterLab after Run All, light and dark, and on
the gallery's pages, which have no kernel. No serious or critical fault.

With LITE_TEST_SHOTS=FOLDER a picture of each is kept there, to be looked at.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.ui.test_accessible import AXE

pytestmark = [pytest.mark.browser, pytest.mark.hours, pytest.mark.cpu]

NOTEBOOKS = ROOT / "notebooks"
LESSONS = sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb"))
#: Faults of what matches, each as one line with the element and what axe says about it.
FAULTS = """async (scope) => {
  const { violations } = await axe.run(scope, { resultTypes: ['violations'] });
  return violations.filter((v) => ['serious', 'critical'].includes(v.impact)).flatMap((v) =>
    v.nodes.map((n) => `${v.id}: ${n.html.slice(0, 160)} ${n.failureSummary.split('\\n')[1]}`));
}"""
#: JupyterLab's own: a table of pandas and the box of an output that scrolls.
OUTPUTS = {"include": [[".jp-OutputArea-output"]], "exclude": [[".dataframe"], [".plotly"]]}


#: Of the gallery's pages the colours of code are nbconvert's.
GALLERY = {"include": [["body"]], "exclude": [[".highlight"], [".dataframe"]]}
#: In a process of its own: what runs a notebook cannot do so beside an open browser.
WRITE = """import sys
from pathlib import Path
from scripts.gallery import page_of
Path(sys.argv[2]).write_text(page_of(Path(sys.argv[1])), "utf-8")"""


@pytest.mark.parametrize("name", LESSONS)
def test_no_serious_fault_after_run_all(lab: Any, server: Any, name: str) -> None:
    root = server("/").root
    shutil.copy(NOTEBOOKS / f"{name}.ipynb", root)
    shutil.copytree(NOTEBOOKS / "models", root / "models", dirs_exist_ok=True)
    lab_page = lab(["1"])
    page = lab_page.page
    page.set_viewport_size({"width": 1400, "height": 6000})  # JupyterLab draws what is on screen
    lab_page.goto(f"{name}.ipynb")
    assert lab_page.run_all()
    page.add_script_tag(path=AXE)
    found: dict[str, str] = {}  # fault → where it was seen first
    for theme in ("light", "dark"):
        lab_page.theme(dark=theme == "dark")
        page.wait_for_timeout(1000)
        lab_page.shot(f"lesson-{name[:2]}-{theme}")
        for fault in page.evaluate(FAULTS, OUTPUTS):
            found.setdefault(fault, theme)
    assert not found, "\n".join(f"{theme}: {fault}" for fault, theme in found.items())


@pytest.mark.parametrize("name", LESSONS)
def test_no_serious_fault_in_the_gallery(chromium: Any, tmp_path: Path, name: str) -> None:
    written = tmp_path / "page.html"
    lesson = NOTEBOOKS / f"{name}.ipynb"
    subprocess.run([sys.executable, "-c", WRITE, lesson, written], check=True, cwd=ROOT)
    plotly = ".figure(" in lesson.read_text("utf-8")
    assert plotly == ("An interactive Plotly figure" in written.read_text("utf-8"))
    page = chromium.new_page(viewport={"width": 1200, "height": 1500})
    try:
        page.goto(written.as_uri())
        page.add_script_tag(path=AXE)
        if shots := os.environ.get("LITE_TEST_SHOTS"):
            page.screenshot(path=str(Path(shots) / f"gallery-{name[:2]}.png"), full_page=True)
        assert page.evaluate(FAULTS, GALLERY) == []
    finally:
        page.close()
