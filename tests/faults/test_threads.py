"""Threads that cannot start: one line, and the next run works."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from lite_engine import optimize

from tests.small_models import classifier

from .campaign import compiled_shim

pytestmark = pytest.mark.cpu
CHILD = """
import ctypes, os, sys
import numpy as np
from lite_engine import Predictor
from lite_engine.errors import LiteError
shim = ctypes.CDLL(os.environ["LITE_TEST_SHIM"])
feeds = {"x": np.ones((1, 3, 20, 20), np.float32)}
wanted = Predictor(sys.argv[1], threads=1).run(feeds)["prob"]
for n in (1, 2, 3):
    predictor = Predictor(sys.argv[1], threads=3 + n)
    shim.fault_threads(ctypes.c_long(n))
    try:
        got = predictor.run(feeds)
        print(n, "ran")
    except LiteError as error:
        print(n, error)
    shim.fault_threads(ctypes.c_long(-1))
    np.testing.assert_array_equal(predictor.run(feeds)["prob"], wanted)
"""


def test_the_pool(tmp_path: Path) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("no gcc; sudo apt-get install gcc")
    path = optimize(classifier(), targets=["x86", "arm"]).save(tmp_path / "m.lite")
    shim = str(compiled_shim(tmp_path))
    env = os.environ | {"LD_PRELOAD": shim, "LITE_TEST_SHIM": shim}
    done = subprocess.run(
        [sys.executable, "-c", CHILD, path], capture_output=True, text=True, env=env
    )
    assert done.returncode == 0, done.stderr[-2000:]
    lines = done.stdout.splitlines()
    assert len(lines) == 3 and all("threads" in line for line in lines), lines
