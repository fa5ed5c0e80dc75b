"""Executed instructions of the AArch64 runner and of the peers, where a clock says nothing.

count("m.lite")                                       # from start to first result, output written
count_peer("ncnn", Path("m.ncnn"), feeds, root)       # one inference
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from lite_engine._native import counter_path, runner_path
from lite_engine.errors import BackendUnavailableError, LiteError

_HERE = Path(__file__).parent
#: The system call that peer.py marks an inference with, by its number on AArch64; no engine makes
#: it.
_GETPPID = 173


def count(model: Path, *, runner: Path | None = None, cpu: str = "max", runs: int = 1) -> int:
    """Instructions that `lite_run` executes for `runs` inferences with one thread, loading and
    packing included. The same every time but for a few system calls.

    Raises BackendUnavailableError without qemu or its counting plugin, LiteError when it fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        program = [str(runner or runner_path("aarch64")), str(model), "--threads", "1", "--runs",
                   str(runs), "--output", folder]  # fmt: skip
        return _counted(program, cpu)


def count_peer(engine: str, model: Path, feeds: Path, root: Path, cpu: str = "neoverse-n1") -> int:
    """Instructions of one inference of a peer (peer.py) with one thread: between two system calls,
    because what Python executes before varies by millions. `root` is what arm_python.sh made.
    Raises as `count`."""
    environment = {"LD_LIBRARY_PATH": "/usr/lib/aarch64-linux-gnu",
                   "PYTHONPATH": f"{root / 'site'}:{_HERE.parents[1]}"}  # fmt: skip
    options = ["-L", str(root)]
    for name, value in environment.items():
        options += ["-E", f"{name}={value}"]
    with tempfile.TemporaryDirectory() as folder:
        marks = Path(folder) / "marks.txt"
        program = [str(root / "usr" / "bin" / "python3.11"), str(_HERE / "peer.py"), engine,
                   str(model), str(feeds)]  # fmt: skip
        _counted(program, cpu, options, f",out={marks},call={_GETPPID}")
        before, after = (int(line) for line in marks.read_text().split())
    return after - before


def _counted(
    program: list[str], cpu: str, options: list[str] | None = None, arguments: str = ""
) -> int:
    emulator = shutil.which("qemu-aarch64")
    if not emulator:
        raise BackendUnavailableError("counting needs qemu-aarch64; sudo apt-get install qemu-user")
    done = subprocess.run(
        [emulator, "-cpu", cpu, *(options or []), "-plugin", f"{counter_path()}{arguments}",
         *program],
        capture_output=True, text=True, timeout=1800,
    )  # fmt: skip
    found = re.search(r"^instructions (\d+)$", done.stderr, re.M)
    if done.returncode or not found:
        raise LiteError(f"no count: {done.stderr.strip()[-300:]}")
    return int(found[1])
