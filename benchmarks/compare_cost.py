"""What `lite compare` costs: time and memory against two plain runs and the reference.

    python -m benchmarks.compare_cost [--net resnet50] [--backends x86,opencl] [--json FILE]

Every figure is a process of its own, from its start to its end: `lite run` on each backend and
on the NumPy reference, then `lite compare`. The bars for ResNet-50: at most 4 times the two plain
runs plus the reference, and under 2 GB. Exit code 1 when one is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from lite_engine.profile.environment import environment

TIMES = 4.0
BYTES = 2e9
BUILD = """
import sys, onnx
from benchmarks import zoo
onnx.save(zoo.build(sys.argv[1]), sys.argv[2])
"""


def process(arguments: list[str]) -> dict[str, Any]:
    """Wall and CPU seconds, peak resident bytes and exit code of `lite` with these arguments."""
    begin = time.perf_counter()
    started = subprocess.Popen(
        [sys.executable, "-m", "lite_workbench.cli", *arguments], stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(started.pid, 0)
    started.returncode = os.waitstatus_to_exitcode(status)
    return {
        "wall_s": time.perf_counter() - begin,
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "peak_bytes": usage.ru_maxrss * 1024,
        "code": started.returncode,
    }


def measure(network: str, backends: list[str]) -> dict[str, dict[str, Any]]:
    """Figures of "run BACKEND" for each, of "run reference" and of "compare"."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / f"{network}.onnx")
        # NOTE: a process inherits the peak of the one that starts it, so this one stays small.
        subprocess.run([sys.executable, "-c", BUILD, network, path], check=True)
        found = {f"run {b}": process(["run", path, "--backend", b])
                 for b in [*backends, "reference"]}  # fmt: skip
        found["compare"] = process(["compare", path, "--backends", ",".join(backends)])
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.compare_cost", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--net", default="resnet50", help="network of the zoo")
    parser.add_argument("--backends", default="x86,opencl", metavar="A,B")
    parser.add_argument("--json", type=Path, help="file for every figure")
    args = parser.parse_args()
    found = measure(args.net, args.backends.split(","))
    for name, row in found.items():
        print(f"{name:16} {row['wall_s']:7.2f} s wall {row['cpu_s']:7.2f} s CPU "
              f"{row['peak_bytes'] / 1e6:8.0f} MB  exit code {row['code']}")  # fmt: skip
    own = found["compare"]
    plain = sum(found[f"run {b}"]["wall_s"] for b in args.backends.split(","))
    limit = TIMES * plain + found["run reference"]["wall_s"]
    good = not own["code"] and own["wall_s"] <= limit and own["peak_bytes"] < BYTES
    print(f"compare {own['wall_s']:.1f} s of {limit:.1f} s ({TIMES:g} × the two runs + the "
          f"reference), {own['peak_bytes'] / 1e9:.2f} GB of {BYTES / 1e9:g} GB: "
          f"{'good' if good else 'MISSED'}")  # fmt: skip
    if args.json:
        args.json.write_text(json.dumps({"environment": environment(), **found}, indent=1))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
