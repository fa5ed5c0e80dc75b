"""Does the runtime without Python give the same bits on OpenCL as pyopencl, and how fast?

    python -m benchmarks.opencl.executors [--only NAME,…] [--json FILE]

Each network of the zoo, fp32 and fp16: both executors in one process, on one plan, in turns:
whether the bits are equal, and the least time of a whole call with its copies. Then the file
alone, run by `lite_run_opencl`: its programs are made for a typical device of the class, so that
sums may come in another order than on the plan for this device. Exit status 1 when bits of one
plan differ, or when the runner's outputs are further off than orders of summation explain.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from lite_engine import Predictor, optimize, settings
from lite_engine._native import runner_path
from lite_engine.runtime.inputs import random_feeds

from benchmarks import zoo
from benchmarks.opencl.networks import LIMITS, error_of

RUNS = 60


def runner() -> Path:
    """The runner that can open a device's library."""
    return runner_path(opencl=True)


def examine(name: str, precision: str) -> dict[str, Any]:
    """Whether the bits are equal, ms by executor, and their ratio."""
    with tempfile.TemporaryDirectory() as folder:
        source, file = Path(folder) / "network.onnx", Path(folder) / "network.lite"
        source.write_bytes(zoo.build(name).SerializeToString())
        model = optimize(source, targets=["opencl"], precision={"opencl": precision})
        model.save(file)
        feeds = random_feeds(model.graph)
        alone = _without_python(file, feeds, Path(folder))
        predictors = {}
        for executor in ("pyopencl", "native"):
            with settings.override(LITE_OPENCL_EXECUTOR=executor):
                predictors[executor] = Predictor(file, "opencl")
                found = predictors[executor].run(feeds)
            if executor == "pyopencl":
                expected = found
    if isinstance(alone, str):
        return {"failed": alone}
    row: dict[str, Any] = {
        "equal": all(_same(found[n], y) for n, y in expected.items()),
        "runner": 0.0
        if all(_same(alone[n], y) for n, y in expected.items())
        else error_of(alone, expected),
        **_ms(predictors, feeds),
    }
    row["ratio"] = round(row["native"] / row["pyopencl"], 2)
    row["right"] = row["equal"] and row["runner"] <= LIMITS[precision]
    return row


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def _without_python(
    file: Path, feeds: dict[str, np.ndarray], folder: Path
) -> dict[str, np.ndarray] | str:
    """The runner's outputs by name, or what it says."""
    command = [str(runner()), str(file), "--backend", "opencl", "--output", str(folder / "out")]
    for number, (name, x) in enumerate(feeds.items()):
        np.save(folder / f"{number}.npy", x)
        command += ["--input", f"{name}={folder / f'{number}.npy'}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode:
        return done.stderr.strip() or f"exit status {done.returncode}"
    return {p.stem: np.load(p) for p in (folder / "out").glob("*.npy")}


def _ms(predictors: dict[str, Predictor], feeds: dict[str, np.ndarray]) -> dict[str, float]:
    """Least ms of a call, measured in turns."""
    least = dict.fromkeys(predictors, float("inf"))
    for _ in range(RUNS):
        for name, predictor in predictors.items():
            execution = predictor.execution()
            ordered = [feeds[n] for n in predictor.input_names]
            start = time.perf_counter()
            execution.run(ordered)
            least[name] = min(least[name], time.perf_counter() - start)
    return {name: round(seconds * 1e3, 3) for name, seconds in least.items()}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.opencl.executors", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--only", help="some networks, by name")
    parser.add_argument("--json", type=Path, help="file for every figure")
    args = parser.parse_args()
    print("| network | precision | same bits | the runner's | pyopencl, ms | native, ms | ratio |\n"
          "|---|---|---|---|---|---|---|", flush=True)  # fmt: skip
    rows: dict[str, dict[str, Any]] = {}
    for name in args.only.split(",") if args.only else zoo.NAMES:
        for precision in ("fp32", "fp16"):
            row = rows[f"{name} {precision}"] = examine(name, precision)
            if "failed" in row:
                print(f"| {name} | {precision} | {row['failed']} | – | – | – | – |", flush=True)
                continue
            figures = f"{row['pyopencl']:.3f} | {row['native']:.3f} | {row['ratio']:.2f}"
            equal = "yes" if row["equal"] else "NO"
            alone = f"{row['runner']:.0e}" if row["runner"] else "same bits"
            print(f"| {name} | {precision} | {equal} | {alone} | {figures} |", flush=True)
    right = sum(row.get("right", False) for row in rows.values())
    print(f"\n{right} of {len(rows)} are right")
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1))
    return 0 if right == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
