"""Writes what people keep, as this version writes it: `python -m tests.upgrades.make`, once per
release, into `data/VERSION`. Samples of released versions are never written again."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

import lite_workbench as lw
import numpy as np
from lite_engine import Predictor, __version__
from lite_engine.devices.registry import add_entry
from lite_engine.history import History

DATA = Path(__file__).parent / "data"
#: A notebook of this version: each cell, in turn.
CELLS = (
    "%load_ext lite_workbench\nimport lite_workbench as lw",
    'session = lw.open("digits.liteproject")',
    'profile = session.profile("reference", runs=1)',
    'assert list(session.versions) == ["float", "int8"]',
    "%lite info digits.lite",
)


def main() -> None:
    folder = DATA / __version__
    if folder.exists():
        sys.exit(f"{folder} exists already: samples are written once")
    with tempfile.TemporaryDirectory() as name:
        os.environ["LITE_CACHE_DIR"] = name
        part = Path(name) / "samples"
        part.mkdir()
        _fill(part)
        shutil.copytree(part, folder)


def _fill(folder: Path) -> None:
    session = lw.open(lw.shipped("digits.onnx"))
    session.convert(targets=["x86"])
    session.quantize(lw.shipped("digits_held_back.npz"), limit=8)
    session.set_input(lw.shipped("digits.png"))
    model = session.versions["int8"].save(folder / "digits.lite")
    session.profile("reference", runs=3)
    session.compare("x86", "reference")
    session.selected = ["/b3/dw/Conv"]
    session.save(folder / "digits", notes="kept")
    outputs = Predictor(model, "reference").run(session.feeds)
    np.savez(folder / "digits.npz", **session.feeds, **{f"out_{k}": v for k, v in outputs.items()})
    History(folder / "runs.sqlite").add(session.profiles["reference"], "digits.onnx", tag="first")
    add_entry("board", "ssh://ada@board")
    shutil.copyfile(Path(os.environ["LITE_CACHE_DIR"]) / "devices.json", folder / "devices.json")
    cells = [
        {"cell_type": "code", "id": f"cell-{i}", "metadata": {}, "execution_count": None,
         "outputs": [], "source": text}
        for i, text in enumerate(CELLS)
    ]  # fmt: skip
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    book = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    (folder / "notebook.ipynb").write_text(json.dumps(book, indent=1) + "\n")


if __name__ == "__main__":
    main()
