"""A moment of coverage-guided fuzzing of each reader (tests/fuzz/guided.py)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from . import data_readers, importers, kept, readers

pytest.importorskip("onnx", reason="pip install onnx")
OTHERS = [*readers.READERS, *data_readers.READERS, *kept.READERS]


def run(root: Path, names: list[str], seconds: float, cache: Path) -> list[dict[str, Any]]:
    path = os.pathsep.join(p for p in sys.path if p)
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.guided", ",".join(names), str(seconds)], cwd=root,
        env={**os.environ, "PYTHONPATH": path, "LITE_CACHE_DIR": str(cache)},
        capture_output=True, text=True,
    )  # fmt: skip
    made = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(made) == len(names), done.stderr[-2000:]
    assert not any(each["bad"] for each in made), made
    return made


@pytest.mark.sweep
@pytest.mark.parametrize("name", importers.READERS)
def test_a_short_run_of_an_importer(name: str, root: Path, tmp_path: Path) -> None:
    (made,) = run(root, [name], 1.5, tmp_path)
    assert made["runs"] > 5 and made["jumps"] > 50, made


@pytest.mark.cpu
@pytest.mark.sweep
def test_a_short_run_of_every_other_reader(root: Path, tmp_path: Path) -> None:
    made = run(root, OTHERS, 0.2, tmp_path)
    assert all(each["runs"] > 5 and each["jumps"] > 2 for each in made), made


@pytest.mark.hours
@pytest.mark.parametrize("name", [*importers.READERS, *OTHERS])
def test_an_hour(name: str, root: Path, tmp_path: Path, capsys) -> None:
    (made,) = run(root, [name], 3600, tmp_path)
    with capsys.disabled():
        print(f"\n{made}")
    assert all(share >= 85 for share in made["lines"].values()), made["lines"]
