"""Which layers take most of a network's time on this OpenCL device?

    python -m benchmarks.opencl.hot --out tests/opencl/hot_layers.json

For each network of the zoo, in fp32 and fp16, the layers that make up 90 % of the time by the
device's own clock, and the device's profile: from both, tests make the kernels again and look
at their registers.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import zoo

SHARE = 0.9
#: Runs of which each layer's least time counts.
_RUNS = 10


def hot(names: Sequence[str], times: np.ndarray) -> list[str]:
    """The fewest names that make up SHARE of the times, slowest first."""
    order = np.argsort(-times, kind="stable")
    before = np.cumsum(times[order]) - times[order]
    return [names[i] for i in order[before < SHARE * times.sum()]]


def layers_of(name: str, precision: str) -> list[str]:
    """The hot layers of a network of the zoo on this machine's OpenCL device."""
    from lite_engine import Predictor, optimize
    from lite_engine.runtime.inputs import random_feeds

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.onnx"
        path.write_bytes(zoo.build(name).SerializeToString())
        model = optimize(path)
    predictor = Predictor(model, "opencl", precision=precision)
    feeds = random_feeds(model.graph)
    predictor.run(feeds)
    execution = predictor.execution()
    ordered = [feeds[n] for n in predictor.input_names]
    times = []
    for _ in range(_RUNS):
        execution.run(ordered)
        times.append([t.end_ns - t.start_ns for t in execution.times()])
    steps = [i for i, s in enumerate(execution.plan.steps) if s.op != "Copy"]
    least = np.min(times, axis=0)[steps]
    return hot([execution.plan.steps[i].name for i in steps], least)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.opencl.hot", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    from lite_engine.backends.opencl.device import choose, open_device

    device = open_device(choose())
    result: dict[str, Any] = {"profile": asdict(device.profile), "networks": {}}
    for name in zoo.NAMES:
        row = {precision: layers_of(name, precision) for precision in ("fp32", "fp16")}
        result["networks"][name] = row
        print(f"{name:20} {len(row['fp32']):4} {len(row['fp16']):4}", flush=True)
    args.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
