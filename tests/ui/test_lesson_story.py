"""Lesson 6 after Run All: its Workbench keeps the story, in JupyterLab and in the exported page."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import Any

import pytest

from tests.conftest import ROOT

pytestmark = [pytest.mark.browser, pytest.mark.hours, pytest.mark.cpu]

NAME = "06_find_the_first_failing_layer"
VERDICT = "goes wrong at b3/dw"


def test_the_first_failing_layer_stays_on_show(lab: Any, server: Any, chromium: Any) -> None:
    root = server("/").root
    shutil.copy(ROOT / "notebooks" / f"{NAME}.ipynb", root)
    shutil.copytree(ROOT / "notebooks" / "models", root / "models", dirs_exist_ok=True)
    lab_page = lab(["1"])
    lab_page.goto(f"{NAME}.ipynb")
    assert lab_page.run_all()
    assert lab_page.run_code("print(fixed.comparisons['x86', other].agrees)") == "True"
    workbench = lab_page.page.locator(".lite-workbench")
    verdict = workbench.locator(".verdict .what")
    verdict.wait_for()
    lab_page.page.wait_for_timeout(2000)  # whatever the last cell changes has reached the page
    assert VERDICT in verdict.inner_text() and "all agree" not in workbench.inner_text()
    assert "1 failing layer" in workbench.locator("button[data-step=Compare]").inner_text()
    lab_page.shot("lesson-story")

    # without a kernel: the picture that was saved
    lab_page.reload()
    subprocess.run(
        [sys.executable, "-m", "nbconvert", "--to", "html", f"{NAME}.ipynb"],
        cwd=root, check=True, capture_output=True,
    )  # fmt: skip
    page = chromium.new_page()
    try:
        page.goto((root / f"{NAME}.html").as_uri())
        still = page.locator(".jp-RenderedHTMLCommon", has_text="Do the backends agree?")
        assert VERDICT in still.inner_text() and "all agree" not in still.inner_text()
    finally:
        page.close()
