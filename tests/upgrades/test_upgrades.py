"""What an earlier version kept opens in this one: model, project, saved runs, devices, notebook.

`data/` has a folder per version, written by that version (`python -m tests.upgrades.make`).
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import lite_workbench as lw
import nbformat
import numpy as np
import pytest
from lite_engine import Predictor, __version__
from lite_engine.devices.registry import load_entries
from lite_engine.history import History
from nbclient import NotebookClient

DATA = Path(__file__).parent / "data"
VERSIONS = sorted(path.name for path in DATA.iterdir())


def released() -> list[str]:
    text = (Path(__file__).parents[2] / "CHANGELOG.md").read_text(encoding="utf-8")
    return re.findall(r"^## (\d+\.\d+\.\d+)", text, re.M)


@pytest.fixture(params=VERSIONS)
def kept(request, tmp_path: Path, monkeypatch) -> Path:
    """A copy of a version's samples, which are also what the cache folder holds."""
    folder = shutil.copytree(DATA / request.param, tmp_path / "kept")
    monkeypatch.setenv("LITE_CACHE_DIR", str(folder))
    return folder


def test_every_version_has_samples() -> None:
    assert sorted(released()) == VERSIONS and __version__ in VERSIONS


def test_a_model_runs(kept: Path) -> None:
    with np.load(kept / "digits.npz") as file:
        data = dict(file)
    feeds = {name: value for name, value in data.items() if not name.startswith("out_")}
    for name, value in Predictor(kept / "digits.lite", "reference").run(feeds).items():
        np.testing.assert_allclose(value, data[f"out_{name}"], atol=1e-6)


def test_a_project_opens_with_what_was_measured(kept: Path) -> None:
    session = lw.open(kept / "digits.liteproject")
    assert list(session.versions) == ["float", "int8"]
    assert session.notes == "kept" and session.selected == ["/b3/dw/Conv"]
    assert session.profiles["reference"].layers
    assert session.comparisons["x86", "reference"].layers
    with np.load(kept / "digits.npz") as file:
        expected = file["out_probability"]
    found = session.predictor("reference", "int8").run(session.feeds)["probability"]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_saved_runs_are_listed_and_grow(kept: Path) -> None:
    history = History(kept / "runs.sqlite")
    run, profile = history.get("first")
    assert run.backend == "reference" and run.path == "digits.onnx"
    assert history.add(profile, "digits.onnx", tag="second")
    assert [r.tag for r in history.list()] == ["second", "first"]


def test_devices_are_known(kept: Path) -> None:
    assert [(e.name, e.address) for e in load_entries()] == [("board", "ssh://ada@board")]


@pytest.mark.slow
def test_a_notebook_runs(kept: Path) -> None:
    book = nbformat.read(kept / "notebook.ipynb", as_version=4)
    nbformat.validate(book)
    NotebookClient(book, timeout=60, resources={"metadata": {"path": str(kept)}}).execute()
