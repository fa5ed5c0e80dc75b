"""`make bench`: the zoo on our engine and its peers, interleaved, as ratios.

    python -m benchmarks [--nets resnet50,…] [--engines lite,onnxruntime,openvino] [--threads 1,2]
                         [--precision fp32|bf16] [--seconds 2] [--json FILE]

One process per engine. All load and warm up for one (network, threads), then run in short bursts in
turn, so that noise falls on all alike. Peers are optional (`pip install "lite-workbench[bench]"`);
one whose packages conflict may live in its own environment: LITE_BENCH_OPENVINO=/path/to/python.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from lite_engine.runtime.environment import environment

from benchmarks import zoo

TABLE = (
    "mobilenet_v1", "mobilenet_v2", "mobilenet_v3_small", "shufflenet_v2", "squeezenet", "resnet18",
    "resnet50", "yolov3_tiny", "unet", "ocr_recogniser",
)  # fmt: skip
BURST = 5


class Worker:
    """One engine in its own process."""

    def __init__(self, engine: str) -> None:
        self.engine = engine
        python = os.environ.get(f"LITE_BENCH_{engine.upper()}", sys.executable)
        self.process = subprocess.Popen(
            [python, "-m", "benchmarks.workers", engine],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip

    def ask(self, **command: Any) -> dict[str, Any]:
        """The reply; an "error" key when the engine failed or died."""
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(command) + "\n")
            self.process.stdin.flush()
            return dict(json.loads(self.process.stdout.readline()))
        except (OSError, ValueError):
            return {"error": f"{self.engine} is not installed or died"}

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


def measure(
    path: str, engines: list[str], threads: int, precision: str, seconds: float
) -> dict[str, Any]:
    """Per engine: minimum and median ms, load seconds, memory, difference to the first engine."""
    workers = {e: Worker(e) for e in engines}
    rows: dict[str, Any] = {}
    loaded = {}
    for engine, worker in workers.items():
        reply = worker.ask(load=path, threads=threads, precision=precision)
        loaded[engine] = reply
        rows[engine] = {"error": reply["error"]} if "error" in reply else {"ms": []}
    good = [e for e in engines if "error" not in rows[e]]
    spent = 0.0
    while good and spent < seconds * len(good) * 1e3:
        for engine in good:
            times = workers[engine].ask(burst=BURST).get("ms", [])
            rows[engine]["ms"] += times
            spent += sum(times)
    reference = next((np.concatenate(loaded[e]["outputs"]) for e in good if e != "lite"), None)
    for engine in good:
        times = rows[engine].pop("ms")
        found = np.concatenate(loaded[engine]["outputs"])
        rows[engine] = {
            "min_ms": min(times), "median_ms": float(np.median(times)), "runs": len(times),
            "load_s": loaded[engine]["load_s"], "rss_mib": loaded[engine]["rss_mib"],
            "difference": None if reference is None or found.shape != reference.shape
            else float(np.abs(found - reference).max() / (np.abs(reference).max() or 1)),
        }  # fmt: skip
    for worker in workers.values():
        worker.close()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nets", default=",".join(TABLE))
    parser.add_argument("--engines", default="lite,onnxruntime,openvino")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--precision", default="fp32", choices=("fp32", "bf16"))
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--json", default="")
    args = parser.parse_args()
    engines = args.engines.split(",")
    result: dict[str, Any] = {"environment": environment(), "precision": args.precision, "nets": {}}
    print(f"{'network':22}{'threads':>8}" + "".join(f"{e:>14}" for e in engines) + f"{'ratio':>8}")
    ratios: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in args.nets.split(","):
            path = str(Path(folder) / f"{name}.onnx")
            onnx.save(zoo.build(name), path)
            for threads in args.threads.split(","):
                rows = measure(path, engines, int(threads), args.precision, args.seconds)
                result["nets"][f"{name}/{threads}"] = rows
                cells = [
                    f"{rows[e]['min_ms']:.2f}" if "min_ms" in rows[e] else "–" for e in engines
                ]
                peers = [rows[e]["min_ms"] for e in engines if e != "lite" and "min_ms" in rows[e]]
                ratio = ""
                if peers and "min_ms" in rows.get("lite", {}):
                    value = rows["lite"]["min_ms"] / min(peers)
                    ratios.setdefault(threads, []).append(value)
                    ratio = f"{value:.2f}"
                line = "".join(f"{c:>14}" for c in cells)
                print(f"{name:22}{threads:>8}{line}{ratio:>8}", flush=True)
    for threads, values in ratios.items():
        mean = math.exp(sum(math.log(v) for v in values) / len(values))
        result[f"geomean_{threads}"] = mean
        print(f"geometric mean of ours / best peer, {threads} threads: {mean:.3f}")
    if args.json:
        Path(args.json).write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
