"""OpenCL on this machine's CPU beside our own CPU backend, one thread each.

    python -m benchmarks.opencl.on_cpu [--nets mobilenet_v1,…] [--runs 7] [--json FILE]

Per network the processor time of a whole run (the driver's threads included; a busy machine changes
it least), runs of both in turn, and what the layers take by their own clocks; the least of each.
The bar: OpenCL at least half as fast. Exit code 1 when a whole run is slower.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import onnx
from lite_engine import Predictor, optimize
from lite_engine.profile.environment import environment
from lite_engine.runtime import host_target
from lite_engine.runtime.inputs import random_feeds

from benchmarks import zoo

SHARE = 0.5
THREADS = "POCL_MAX_PTHREAD_COUNT"  # PoCL's own; read when it is loaded
NETS = [n for n in zoo.NAMES if n not in ("yolov3_tiny", "ocr_detector", "deeplab_v3")]


def least_of(network: str, runs: int) -> dict[str, dict[str, float]]:
    """Per backend the least processor time of a run and sum of its layers, in ms."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{network}.onnx"
        onnx.save(zoo.build(network), path)
        model = optimize(path)
    feeds = random_feeds(model.graph)
    ready = {}
    for backend in (host_target(), "opencl"):
        predictor = Predictor(model, backend, threads=1)
        execution = predictor.execution()
        ordered = [feeds[name] for name in predictor.input_names]
        execution.run(ordered)  # compiles
        ready[backend] = execution, ordered
    least = {b: {"run_ms": math.inf, "layers_ms": math.inf} for b in ready}
    for _ in range(runs):
        for backend, (execution, ordered) in ready.items():
            begin = time.process_time()
            execution.run(ordered)
            run = 1e3 * (time.process_time() - begin)
            layers = sum(t.end_ns - t.start_ns for t in execution.times()) / 1e6
            own = least[backend]
            own["run_ms"] = min(own["run_ms"], run)
            own["layers_ms"] = min(own["layers_ms"], layers)
    return least


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.opencl.on_cpu", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--nets", default=",".join(NETS), help="networks of the zoo")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--json", type=Path, help="file for every figure")
    args = parser.parse_args()
    os.environ.setdefault(THREADS, "1")
    host = host_target()
    rows: dict[str, dict[str, Any]] = {}
    print(f"{'network':20} {host + ' ms':>9} {'OpenCL ms':>9} {'layers':>7} {'run':>7}")
    for network in args.nets.split(","):
        least = least_of(network, args.runs)
        own, other = least[host], least["opencl"]
        shares = {key: own[f"{key}_ms"] / other[f"{key}_ms"] for key in ("layers", "run")}
        rows[network] = {**least, **shares}
        print(f"{network:20} {own['run_ms']:9.2f} {other['run_ms']:9.2f} {shares['layers']:7.2f} "
              f"{shares['run']:7.2f}{'' if shares['run'] >= SHARE else '  SLOWER'}",
              flush=True)  # fmt: skip
    if args.json:
        args.json.write_text(json.dumps({"environment": environment(), "rows": rows}, indent=1))
    return 0 if all(row["run"] >= SHARE for row in rows.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
