"""What the first run of a network on OpenCL costs: programs and processor time, cold and warm.

    python -m benchmarks.opencl.first_run [--nets mobilenet_v3_small,…] [--json FILE]

Each network starts in two processes of its own, one after the other: the first with empty caches
(ours, and PoCL's where PoCL is the driver), the second with what the first one left. Counted is the
processor time of everything from opening the device to the end of the first run, compilers in other
processes included: a busy machine changes it least. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import zoo

NETS = ("mobilenet_v1", "mobilenet_v3_small", "ghostnet", "resnet18", "ocr_detector")
TIMEOUT_S = 900


def examine(name: str) -> dict[str, Any]:
    """The first run of a network in this process."""
    from lite_engine import Predictor, optimize
    from lite_engine.backends.opencl.device import choose, open_device
    from lite_engine.runtime.inputs import random_feeds

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "network.onnx"
        path.write_bytes(zoo.build(name).SerializeToString())
        model = optimize(path)
    feeds = random_feeds(model.graph)
    began = _cpu_s()
    device = open_device(choose())
    predictor = Predictor(model, "opencl")
    predictor.execution()
    built = _cpu_s()
    predictor.run(feeds)
    programs = {(k.launch.file, k.launch.options) for k in _kernels(predictor)}
    return {
        "device": device.report.name, "programs": len(programs),
        "compiled": device.programs.compiled, "cpu_s": _cpu_s() - began, "build_s": built - began,
    }  # fmt: skip


def _kernels(predictor: Any) -> list[Any]:
    parts = [part.executable for part in predictor.execution()._parts]
    return [k for part in parts for ways in getattr(part, "_steps", ()) for k in ways.kernels]


def _cpu_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def cold_and_warm(name: str) -> list[dict[str, Any]]:
    """The rows of both processes. Raises RuntimeError with what a process said last."""
    with tempfile.TemporaryDirectory() as folder:
        caches = {key: f"{folder}/{key}" for key in ("LITE_CACHE_DIR", "POCL_CACHE_DIR")}
        for path in caches.values():
            Path(path).mkdir()
        rows = []
        for _ in range(2):
            done = subprocess.run(
                [sys.executable, "-m", "benchmarks.opencl.first_run", "--examine", name],
                env={**os.environ, **caches}, capture_output=True, text=True, timeout=TIMEOUT_S,
            )  # fmt: skip
            if done.returncode:
                raise RuntimeError(f"{name}: {done.stderr.strip().splitlines()[-1:]}")
            rows.append(json.loads(done.stdout.splitlines()[-1]))
        return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.opencl.first_run", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--nets", default=",".join(NETS), help="networks of the zoo")
    parser.add_argument("--json", type=Path, help="file for every figure")
    parser.add_argument("--examine", help=argparse.SUPPRESS)  # one network, in this process
    args = parser.parse_args()
    if args.examine:
        print(json.dumps(examine(args.examine)))
        return
    print(
        "| network | programs | cold, CPU s | building them | warm, CPU s |\n|---|---|---|---|---|"
    )
    rows: dict[str, Any] = {}
    for name in args.nets.split(","):
        cold, warm = rows[name] = cold_and_warm(name)
        print(
            f"| {name} | {cold['programs']} | {cold['cpu_s']:.1f} | {cold['build_s']:.1f} | "
            f"{warm['cpu_s']:.1f} |", flush=True,
        )  # fmt: skip
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
