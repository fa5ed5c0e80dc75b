"""`lite compare --devices`: each device has a CPU of its own, which needs no naming."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lite_workbench import shipped
from lite_workbench.cli import main

pytestmark = [pytest.mark.cpu, pytest.mark.arm]


def test_each_device_runs_on_its_own_cpu(tmp_path: Path) -> None:
    made = tmp_path / "made.json"
    words = ["compare", str(shipped("digits.onnx")), "--devices", "local,emulated"]
    assert main([*words, "--no-isolated", "--json", str(made)]) == 0
    data = json.loads(made.read_text())
    assert data["agrees"] and data["candidate"].startswith("arm")
