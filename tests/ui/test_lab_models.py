"""Model files in JupyterLab: a double click, the menu, the launcher and the palette open them."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest

from tests.conftest import ROOT

pytestmark = [pytest.mark.browser, pytest.mark.cpu]

PATH = 'nets/it\'s "digits".onnx'  # a name that needs escaping, in a folder
COMMAND = "([id, args]) => window.jupyterapp.commands.execute(id, args).then(() => null)"
FACTORY = "(path) => window.jupyterapp.docRegistry.defaultWidgetFactory(path).name"


@pytest.fixture
def lab_page(lab: Any, server: Any) -> Any:
    folder = server("/").root / "nets"
    folder.mkdir(exist_ok=True)
    shutil.copy(ROOT / "notebooks" / "models" / "digits.onnx", server("/").root / PATH)
    page = lab(["1"])
    page.page.evaluate(COMMAND, ["filebrowser:go-to-path", {"path": "nets"}])
    page.page.evaluate(COMMAND, ["filebrowser:activate", {}])
    return page


def test_a_model_opens_from_file_browser_launcher_and_palette(lab_page: Any, server: Any) -> None:
    page = lab_page.page
    folder = server("/").root / "nets"

    # a double click
    item = page.locator(".jp-DirListing-item[data-file-type=lite-model]")
    item.dblclick()
    shown = page.locator(".jp-CodeConsole .lite-top", has_text="digits").locator("visible=true")
    shown.wait_for(timeout=60_000)
    page.locator(".lite-facts").locator("visible=true").first.wait_for()
    assert page.locator(".lm-TabBar-tab", has_text='it\'s "digits".onnx').count() == 1
    lab_page.shot("lab-models")

    # again, by the menu: the same console is shown, and nothing was written beside the model
    item.click(button="right")
    page.locator(".lm-Menu-itemLabel", has_text="Open with Lite Workbench").click()
    shown.wait_for()
    assert page.locator(".jp-CodeConsole").count() == 1
    assert [p.name for p in folder.rglob("*") if p.is_file()] == [PATH[5:]], "no checkpoint of it"
    page.locator("text=Opening").first.wait_for(state="detached")  # what stood in is gone

    # the launcher asks for a model
    page.evaluate(COMMAND, ["launcher:create", {}])
    page.locator(".jp-LauncherCard", has_text="Lite Workbench").click()
    page.locator(".jp-Dialog .jp-DirListing-item", has_text="digits").click()
    page.locator(".jp-Dialog button.jp-mod-accept").click()
    shown.wait_for()

    # so does the command palette
    page.evaluate(COMMAND, ["apputils:activate-command-palette", {}])
    page.keyboard.type("Lite Workbench")
    page.locator(".lm-CommandPalette-itemLabel", has_text="Lite Workbench").first.click()
    page.locator(".jp-Dialog", has_text="Choose a model").wait_for()
    page.locator(".jp-Dialog button.jp-mod-reject").click()

    # who opens what by a double click
    kinds = {name: page.evaluate(FACTORY, name) for name in ("a.nb", "a.PB", "a.ipynb", "a.json")}
    assert kinds["a.nb"] == kinds["a.PB"] == "Lite Workbench"
    assert kinds["a.ipynb"] == "Notebook" and kinds["a.json"] != "Lite Workbench", json.dumps(kinds)
