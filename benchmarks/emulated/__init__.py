"""Executed instructions of the AArch64 runner, where a clock says nothing.

count("m.lite")                      # from start to first result, output written
python -m benchmarks.emulated m.lite [RUNNER] [--cpu cortex-a53]
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from lite_engine._native import counter_path, runner_path
from lite_engine.errors import BackendUnavailableError, LiteError


def count(model: Path, *, runner: Path | None = None, cpu: str = "max", runs: int = 1) -> int:
    """Instructions that `lite_run` executes for `runs` inferences with one thread, loading and
    packing included. The same every time but for a few system calls.

    Raises BackendUnavailableError without qemu or its counting plugin, LiteError when it fails.
    """
    emulator = shutil.which("qemu-aarch64")
    if not emulator:
        raise BackendUnavailableError("counting needs qemu-aarch64; sudo apt-get install qemu-user")
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [emulator, "-cpu", cpu, "-plugin", counter_path(),
             runner or runner_path("aarch64"), model,
             "--threads", "1", "--runs", str(runs), "--output", folder],
            capture_output=True, text=True, timeout=1800,
        )  # fmt: skip
    found = re.search(r"^instructions (\d+)$", done.stderr, re.M)
    if done.returncode or not found:
        raise LiteError(f"no count: {done.stderr.strip()[-300:]}")
    return int(found[1])
