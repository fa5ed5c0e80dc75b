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

from lite_engine._native import runner_path
from lite_engine.errors import BackendUnavailableError, LiteError

_SOURCE = Path(__file__).with_name("count.c")


def count(model: Path, *, runner: Path | None = None, cpu: str = "max", runs: int = 1) -> int:
    """Instructions that `lite_run` executes for `runs` inferences with one thread, loading and
    packing included. The same every time but for a few system calls.

    Raises BackendUnavailableError without qemu's plugins or a C compiler, LiteError when it fails.
    """
    emulator, compiler = shutil.which("qemu-aarch64"), shutil.which("cc")
    if not emulator or not compiler:
        raise BackendUnavailableError(
            "counting needs qemu-aarch64 and cc; sudo apt-get install qemu-user gcc"
        )
    with tempfile.TemporaryDirectory() as folder:
        plugin = f"{folder}/count.so"
        subprocess.run([compiler, "-O2", "-shared", "-fPIC", _SOURCE, "-o", plugin], check=True)
        done = subprocess.run(
            [emulator, "-cpu", cpu, "-plugin", plugin, runner or runner_path("aarch64"), model,
             "--threads", "1", "--runs", str(runs), "--output", folder],
            capture_output=True, text=True, timeout=1800,
        )  # fmt: skip
    found = re.search(r"^instructions (\d+)$", done.stderr, re.M)
    if done.returncode or not found:
        raise LiteError(f"no count: {done.stderr.strip()[-300:]}")
    return int(found[1])
