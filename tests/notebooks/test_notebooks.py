"""Every lesson runs from top to bottom, and is kept without outputs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT

LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SECONDS = 60


def test_there_are_ten() -> None:
    assert [p.name[:2] for p in LESSONS] == [f"{i:02d}" for i in range(1, 11)]


@pytest.mark.parametrize("path", LESSONS, ids=lambda p: p.stem)
def test_it_opens_with_a_picture_and_a_question(path: Path) -> None:
    import re

    first = "".join(json.loads(path.read_text("utf-8"))["cells"][0]["source"])
    (picture,) = re.findall(r'<img src="([^"]+)" alt="[^"]+"', first)
    assert (path.parent / picture).is_file() and re.search(r"\*\*[^*]+\?\*\*", first)


@pytest.mark.parametrize("path", LESSONS, ids=lambda p: p.stem)
def test_outputs_are_stripped(path: Path) -> None:
    cells = json.loads(path.read_text("utf-8"))["cells"]
    code = [c for c in cells if c["cell_type"] == "code"]
    assert code and not any(c["outputs"] or c["execution_count"] for c in code)
    assert cells[0]["cell_type"] == "markdown" and cells[0]["source"][0].startswith("# ")


@pytest.mark.parametrize("path", LESSONS, ids=lambda p: p.stem)
def test_links_lead_to_lessons(path: Path) -> None:
    import re

    for target in re.findall(r"\]\(([^)]+\.ipynb)\)", path.read_text("utf-8")):
        assert (path.parent / target).exists(), target


def test_the_story_of_the_first_failing_layer_stays_on_screen() -> None:
    """Whatever runs after the Workbench of lesson 6 leaves its session as it is."""
    cells = json.loads((ROOT / "notebooks" / "06_find_the_first_failing_layer.ipynb").read_text())
    code = ["".join(c["source"]) for c in cells["cells"] if c["cell_type"] == "code"]
    at = next(i for i, text in enumerate(code) if "Workbench(session" in text)
    rest = "\n".join(code[at + 1 :])
    assert "override" in rest and "session." not in rest.replace("lw.", "")


@pytest.mark.slow
@pytest.mark.parametrize("path", LESSONS, ids=lambda p: p.stem)
def test_lesson_runs(path: Path, tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat", reason="pip install 'lite-workbench[lab]'")
    nbclient = pytest.importorskip("nbclient", reason="pip install 'lite-workbench[lab]'")
    shutil.copy(path, tmp_path)
    book = nbformat.read(tmp_path / path.name, as_version=4)
    nbformat.validate(book)
    client = nbclient.NotebookClient(
        book, timeout=4 * SECONDS, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    )
    client.execute()
    first = [c for c in book.cells if c.cell_type == "code"][:2]
    shown = [o for c in first for o in c.outputs if o.output_type in ("execute_result", "stream")]
    assert shown, "a result within two cells"
    outputs = [o for c in book.cells if c.cell_type == "code" for o in c.outputs]
    assert not any(o.output_type == "error" for o in outputs)
    assert not any(o.get("name") == "stderr" for o in outputs), "a lesson prints no warnings"
    _shows_without_a_kernel(book, outputs)


def _shows_without_a_kernel(book: Any, outputs: list[Any]) -> None:
    """GitHub, nbviewer and nbconvert have no widgets: each has a picture or a table instead."""
    nbconvert = pytest.importorskip("nbconvert", reason="pip install 'lite-workbench[lab]'")
    view = "application/vnd.jupyter.widget-view+json"
    widgets = [o.data for o in outputs if view in o.get("data", {})]
    for data in widgets:
        assert any(mark in data["text/html"] for mark in ("<svg", "<table", "<pre")), data
    book.metadata.pop("widgets", None)  # JupyterLab saves no state of widgets
    page, _ = nbconvert.HTMLExporter().from_notebook_node(book)
    assert "Traceback" not in page
    assert sum(page.count(mark) for mark in ("<svg", "<table")) >= len(widgets)
