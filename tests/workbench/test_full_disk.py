"""A full disk: one line, exit code 1, and nothing half-written left behind."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
from pathlib import Path

LIMIT_BYTES = 50_000


def _small_disk() -> None:
    """Files of the child end at LIMIT_BYTES, as they would on a disk without room."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT_BYTES, LIMIT_BYTES))


def test_no_room(root: Path, tmp_path: Path) -> None:
    model = root / "notebooks" / "models" / "digits.onnx"
    done = subprocess.run(
        [sys.executable, "-m", "lite_workbench.cli", "convert", model, "-o", tmp_path / "out.lite"],
        capture_output=True, text=True, preexec_fn=_small_disk,
    )  # fmt: skip
    assert done.returncode == 1
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1 and "cannot be written" in lines[0]
    assert list(tmp_path.iterdir()) == []
