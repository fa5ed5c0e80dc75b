"""Damaged files of every format: a graph or one line of error, in bounded time and memory.

tests/importers/fuzz.py does it, in a process of its own; what is written here are the amounts.
Lies that random damage would hardly find are in the test of each format.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.importers import fuzz

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize("name", fuzz.MODELS)
def test_damaged(name: str) -> None:
    pytest.importorskip("onnx", reason="pip install onnx")
    path = os.pathsep.join(p for p in sys.path if p)
    done = subprocess.run(
        [sys.executable, "-m", "tests.importers.fuzz", name, "150"], cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    print(found)
    assert not found["bad"], f"{found['bad']}, kept in {found['kept']}"
    assert found["seen"]["ModelFormatError"] > 40  # it does damage
    assert found["seen"]["read"] > 2  # but not only at the first byte
