"""A full disk: one line, exit code 1, and nothing half-written left behind."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

LIMIT_BYTES = 30
MODEL, SAMPLES, IMAGE = "digits.onnx", "digits_held_back.npz", "digits.png"
#: Every kind of file that a verb writes; FULL is where no room is.
CALLS = (
    f"convert {MODEL} -o FULL/a.lite --targets x86",
    f"opt --model_file {MODEL} --optimize_out FULL/b",
    f"quantize {MODEL} -o FULL/d.lite --weights-only int8 --targets x86",
    f"quantize {MODEL} -o FULL/e.lite --calibration {SAMPLES} --samples 2 --method minmax"
    " --resume FULL/e.npz",
    f"run {MODEL} --input {IMAGE} --backend reference --output FULL/f.npz",
    f"compare {MODEL} --backends reference,x86 --no-isolated --json FULL/g.json",
    f"export {MODEL} -o FULL/j --target x86 --no-report",
    "devices add board ssh://me@board",
)
#: One process for all: starting Python is most of the time.
CHILD = """import contextlib, io, json, sys
from lite_workbench.cli import main
for call in json.load(sys.stdin):
    with contextlib.redirect_stderr(io.StringIO()) as errors:
        code = main(call.split())
    print(json.dumps([call, code, errors.getvalue().splitlines()]), flush=True)
"""


def _small_disk() -> None:
    """Files of the child end at LIMIT_BYTES, as they would on a disk without room."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT_BYTES, LIMIT_BYTES))


@pytest.mark.cpu
def test_no_room(root: Path, tmp_path: Path) -> None:
    places = {"LITE_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", CHILD], cwd=root / "notebooks" / "models", env=os.environ | places,
        input=json.dumps([c.replace("FULL", str(tmp_path)) for c in CALLS]),
        capture_output=True, text=True, preexec_fn=_small_disk,
    )  # fmt: skip
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert len(told) == len(CALLS), done.stderr
    for call, code, lines in told:
        assert code == 1 and "cannot be written" in lines[-1], (call, lines)
        assert [x for x in lines if not x.startswith("history ")] == lines[-1:], call
    files = [p for p in tmp_path.rglob("*") if p.is_file() and p.stat().st_size]
    assert files == []
