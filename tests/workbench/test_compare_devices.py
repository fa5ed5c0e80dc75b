"""`lite compare --devices`: each device has a CPU of its own, which needs no naming."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from lite_workbench import shipped

pytestmark = [pytest.mark.cpu, pytest.mark.arm]


def test_each_device_runs_on_its_own_cpu(tmp_path: Path) -> None:
    made = tmp_path / "made.json"
    words = ["compare", str(shipped("digits.onnx")), "--devices", "local,emulated"]
    done = subprocess.run(
        [sys.executable, "-m", "lite_workbench", *words, "--no-isolated", "--json", str(made)],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    data = json.loads(made.read_text())
    assert data["agrees"] and data["candidate"].startswith("arm")
