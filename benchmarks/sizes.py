"""What a further input size and a further predictor of a model cost.

    python -m benchmarks.sizes [--backend x86] [--precision fp32] [--threads 2] [--megabytes 255]

The model is a chain of matrix products, as wide as BERT's, whose number of rows is open. For each
size, in turn: the seconds of its first call, which plans and packs, those of a later call, and the
resident memory of the process afterwards. Then the same of another predictor of the model.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from lite_engine import Model, Predictor, optimize
from lite_engine.ir import DType, Graph, Value

_WIDTHS = ((768, 768), (768, 3072), (3072, 768))
_ROWS = (128, 64, 197, 33)


def chain(megabytes: int) -> Model:
    """So many 10^6 bytes of float32 weights, in whole rounds of three products."""
    rng = np.random.default_rng(0)
    graph, x = Graph("chain"), Value("x", DType.F32, ("rows", _WIDTHS[0][0]))
    graph.inputs = [x]
    each = sum(4 * a * b for a, b in _WIDTHS)
    for _ in range(max(1, megabytes * 10**6 // each)):
        for a, b in _WIDTHS:
            weights = rng.standard_normal((a, b), np.float32) / np.float32(a**0.5)
            x = graph.add("Relu", [graph.add("MatMul", [x, graph.constant(weights)]).output]).output
    graph.outputs = [x]
    return optimize(graph)


def resident_mib() -> float:
    """Of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def tried(predictor: Predictor, rows: int) -> str:
    """A row of the table: first call and later call in ms, memory in MiB."""
    feeds = {"x": np.ones((rows, _WIDTHS[0][0]), np.float32)}
    seconds = []
    for _ in range(4):
        start = time.perf_counter()
        predictor.run(feeds)
        seconds.append(time.perf_counter() - start)
    return f"{seconds[0] * 1e3:9.0f} {min(seconds[1:]) * 1e3:9.0f} {resident_mib():10.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.sizes", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--megabytes", type=int, default=255)
    args = parser.parse_args()
    model = chain(args.megabytes)
    options = {"precision": args.precision, "threads": args.threads}
    print(f"{'rows':>17} {'first, ms':>9} {'later, ms':>9} {'memory, MiB':>10}")
    predictor = Predictor(model, args.backend, **options)
    for rows in _ROWS:
        print(f"{rows:17} {tried(predictor, rows)}", flush=True)
    other = Predictor(model, args.backend, **options)
    print(f"{'another predictor':>17} {tried(other, _ROWS[-1])}")


if __name__ == "__main__":
    main()
