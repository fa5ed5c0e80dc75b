"""Is a profile honest? What the layers add up to against the run, and what profiling costs.

    python -m benchmarks.reconcile [--nets mobilenet_v1,…] [--backends x86,opencl]
                                   [--seconds 2] [--threads 2] [--json FILE]

Per network and backend: the unprofiled run (median), what the layers of profiled runs add up to,
how far `apart` they are and, over 5 %, the profile's own words for it; `own run` is the distance to
the runs that the layers were timed in, which a busy machine does not change. Profiling is in every
run of a CPU: `stamps` bounds from above what its clock reads cost (one per step); `timed / plain`
are the least times of runs whose layers are read out and of runs whose are not, in turn (OpenCL
times its layers in a repetition, with device events). Exit code 1 when a difference over 5 % is not
explained or profiling costs 2 % or more of MobileNetV1 on a CPU.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import onnx
from lite_engine import Predictor, optimize
from lite_engine.profile import profile
from lite_engine.profile.environment import environment
from lite_engine.profile.warnings import outside_the_layers
from lite_engine.runtime import host_target, usability
from lite_engine.runtime.inputs import random_feeds

from benchmarks import zoo

APART = 0.05
OVERHEAD = 0.02
RUNS = (5, 50)


def row_of(predictor: Predictor, feeds: dict[str, Any], seconds: float) -> dict[str, Any]:
    """One network on one backend, in about so many seconds (RUNS are the fewest and the most)."""
    predictor.run(feeds)
    begin = time.perf_counter()
    predictor.run(feeds)
    each = time.perf_counter() - begin
    runs = max(RUNS[0], min(RUNS[1], int(seconds / each / 4)))  # plain, profiled; two in turn
    taken = profile(predictor, feeds, runs=runs, roof=False)
    total = taken.total_ms["median"]
    return {
        "total_ms": total,
        "sum_ms": taken.sum_ms,
        "apart": taken.unexplained_ms / total,
        "own_run": 1 - taken.sum_ms / taken.profiled_ms,
        "said": outside_the_layers(taken),
        "stamps": taken.overhead_share,
        "timed_to_plain": (
            None if predictor.backend == "opencl" else timed_to_plain(predictor, feeds, runs)
        ),
    }


def timed_to_plain(predictor: Predictor, feeds: dict[str, Any], runs: int) -> float:
    """Least time of runs after which the layers were read out / of those where nothing was."""
    arrays = predictor.check_feeds(feeds)
    ordered = [arrays[n] for n in predictor.input_names]
    execution = predictor.execution({n: a.shape for n, a in arrays.items()})
    least = [math.inf, math.inf]
    for run in range(2 * runs):
        begin = time.perf_counter()
        execution.run(ordered)
        least[run % 2] = min(least[run % 2], time.perf_counter() - begin)
        if run % 2:
            execution.times()
    return least[1] / least[0]


def is_good(network: str, backend: str, row: dict[str, Any]) -> bool:
    explained = abs(row["apart"]) <= APART or bool(row["said"])
    cheap = network != "mobilenet_v1" or backend == "opencl" or row["stamps"] < OVERHEAD
    return explained and cheap


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.reconcile", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--nets", default=",".join(zoo.NAMES), help="networks of the zoo")
    parser.add_argument("--backends", default=f"{host_target()},opencl")
    parser.add_argument("--seconds", type=float, default=2, help="per network and backend")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path, help="file for every figure")
    args = parser.parse_args()
    backends = [b for b in args.backends.split(",") if usability(b).usable]
    rows: dict[str, dict[str, Any]] = {}
    good = True
    print(f"{'network':20} {'backend':8} {'run ms':>9} {'layers ms':>9} {'apart':>7} "
          f"{'own run':>7} {'stamps':>7} {'timed / plain':>13}")  # fmt: skip
    for network in args.nets.split(","):
        with tempfile.TemporaryDirectory() as folder:
            onnx.save(zoo.build(network), Path(folder) / f"{network}.onnx")
            model = optimize(Path(folder) / f"{network}.onnx")
        feeds = random_feeds(model.graph)
        for backend in backends:
            row = row_of(Predictor(model, backend, threads=args.threads), feeds, args.seconds)
            rows.setdefault(network, {})[backend] = row
            fine = is_good(network, backend, row)
            good &= fine
            ratio = row["timed_to_plain"]
            print(
                f"{network:20} {backend:8} {row['total_ms']:9.3f} {row['sum_ms']:9.3f} "
                f"{row['apart']:+7.1%} {row['own_run']:+7.1%} {row['stamps']:7.3%} "
                f"{'–' if ratio is None else f'{ratio:.3f}':>13}"
                f"{'' if fine else '  NOT EXPLAINED'}",
                f"\n    {row['said']}" if row["said"] else "",
                flush=True,
            )
    if args.json:
        args.json.write_text(json.dumps({"environment": environment(), "rows": rows}, indent=1))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
