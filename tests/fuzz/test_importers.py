"""A second of coverage-guided fuzzing of each importer (tests/fuzz/importers.py)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from . import importers

pytest.importorskip("onnx", reason="pip install onnx")


def run(root: Path, name: str, seconds: float) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.importers", name, str(seconds)], cwd=root,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout, done.stderr[-2000:]
    made = json.loads(done.stdout)
    assert not made["bad"], made
    return made


@pytest.mark.parametrize("name", importers.FORMATS)
def test_a_short_run(name: str, root: Path) -> None:
    made = run(root, name, 1.5)
    assert made["runs"] > 5 and made["jumps"] > 50, made


@pytest.mark.hours
@pytest.mark.parametrize("name", importers.FORMATS)
def test_an_hour(name: str, root: Path, capsys) -> None:
    made = run(root, name, 3600)
    with capsys.disabled():
        print(f"\n{made}")
    assert all(share >= 85 for share in made["lines"].values()), made["lines"]
