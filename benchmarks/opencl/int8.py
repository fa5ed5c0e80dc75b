"""Int8 on OpenCL: share on the device, bits beside the CPU's, kernel times beside fp32 and fp16.

    python -m benchmarks.opencl.int8 [--only NAME,…] [--batch 8] [--rounds 20] [--layers]
                                     [--tune none|rapid|normal] [--json FILE]

Networks of the zoo are quantized here as `lite quantize` does, with seeded samples; with
LITE_TEST_MODELS=FOLDER the quantized models of that folder follow. Each is measured in one process
with its float versions, in turns: a time is the least sum of the device's own events over all
kernels. `share` is the part of the multiply-adds on OpenCL, `equal` whether every 8-bit value in
the network has the bits of the CPU (of the NumPy reference where the native library is missing):
"by region" where a float layer stands between integers, whose last bits differ, and every region
of integers has those bits when it is given the CPU's floats. Exit status 1 when a network differs,
fails, or leaves OpenCL with more than 5 % of its multiply-adds.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from lite_engine import Predictor, optimize
from lite_engine.backends.cpu import CpuBackend
from lite_engine.backends.opencl.device import choose
from lite_engine.edit import extract_layers
from lite_engine.ir import DType
from lite_engine.model_file import Model
from lite_engine.runtime import host_target
from lite_engine.runtime.inputs import random_feeds
from lite_engine.runtime.tune import tune
from lite_workbench.quantizing import calibrated

from benchmarks import zoo
from benchmarks.models import with_batch

NETWORKS = ("mobilenet_v1", "mobilenet_v2", "resnet50", "ocr_detector", "ocr_recogniser")
FILES = (
    "tflite/ssd_mobilenet_v1_coco_quant.tflite", "tflite/mobilenet_v1_0.25_224_quant.tflite",
    "tflite/vww_96_int8.tflite", "tflite/person_detect_int8.tflite",
    "tflite/micro_speech_int8.tflite", "onnx/DERIVED_mobilenet_v1_0.25_224_qdq_int8.onnx",
)  # fmt: skip
SAMPLES = 4
LEAST_SHARE = 0.95


def versions(name: str, batch: int, folder: Path) -> dict[str, Any]:
    """What Predictors are made of, by precision: (model, precision)."""
    if name.endswith((".tflite", ".onnx")):
        path = Path(os.environ["LITE_TEST_MODELS"]) / name
        return {"int8": (optimize(path), "fp32")}
    path = folder / f"{name}.onnx"
    onnx.save(with_batch(zoo.build(name), batch), path)
    model = optimize(path)
    rng = np.random.default_rng(1)
    samples = [
        {v.name: rng.standard_normal(v.shape).astype(np.float32) for v in model.graph.inputs}
        for _ in range(SAMPLES)
    ]
    quantized = calibrated(optimize(path), samples)
    return {"fp32": (model, "fp32"), "fp16": (model, "fp16"), "int8": (quantized, "int8")}


def kernel_ms(predictor: Predictor, feeds: list[np.ndarray]) -> float:
    """Of all kernels of one run, by the device's events."""
    execution = predictor.execution()
    execution.run(feeds)
    pairs = zip(execution.plan.steps, execution.times(), strict=True)
    own = [t for s, t in pairs if s.backend == "opencl" and s.op != "Copy"]
    return sum(t.end_ns - t.start_ns for t in own) / 1e6


def slowest(predictor: Predictor, count: int = 12) -> list[dict[str, Any]]:
    execution = predictor.execution()
    rows = []
    for step, t in zip(execution.plan.steps, execution.times(), strict=True):
        out = execution.plan.tensors[step.outputs[0]].dims
        us = (t.end_ns - t.start_ns) / 1e3
        rows.append({"us": us, "layer": step.name, "kernel": step.kernel, "out": out})
    return sorted(rows, key=lambda row: -row["us"])[:count]


def examine(name: str, args: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        found = versions(name, args.batch, Path(folder))
    exact = host_target() if CpuBackend().usability().usable else "reference"
    predictors = {
        precision: Predictor(model, "opencl", precision=asked)
        for precision, (model, asked) in found.items()
    }
    if args.tune != "none":
        for predictor in predictors.values():
            tune(predictor, args.tune)
    int8 = predictors["int8"]
    feeds = random_feeds(int8.graph)
    names = [v.name for n in int8.graph.nodes for v in n.outputs if v.dtype in (DType.I8, DType.U8)]
    other = Predictor(found["int8"][0], exact, precision=found["int8"][1])
    made, wanted = (predictor.run(feeds, taps=names) for predictor in (int8, other))
    bytes_ = [n for n, y in wanted.items() if y.dtype.itemsize == 1]
    steps = int8.plan().steps
    whole = sum(s.macs for s in steps)
    row: dict[str, Any] = {
        "batch": args.batch if "fp32" in found else 1,
        "share": sum(s.macs for s in steps if s.backend == "opencl") / whole,
        "elsewhere": [f"{s.op}: {s.why}" for s in steps if s.backend != "opencl"],
        "equal": bool(bytes_) and all(np.array_equal(made[n], wanted[n]) for n in bytes_),
        "equal_by_region": bool(bytes_) and by_region(int8, other, feeds),
        "compared": len(bytes_),
        "against": exact,
    }
    ordered = [feeds[n] for n in int8.input_names]
    least = dict.fromkeys(predictors, float("inf"))
    for _ in range(args.rounds):
        for precision, predictor in predictors.items():
            least[precision] = min(least[precision], kernel_ms(predictor, ordered))
    row["ms"] = {precision: round(ms, 4) for precision, ms in least.items()}
    if args.layers:
        row["layers"] = {precision: slowest(p) for precision, p in predictors.items()}
    return row


def by_region(device: Predictor, other: Predictor, feeds: dict[str, np.ndarray]) -> bool:
    """Whether the layers with 8-bit results have the bits of `other` from its own floats."""
    layers = [n.name for n in device.graph.nodes if n.output.dtype in (DType.I8, DType.U8)]
    regions = extract_layers(device.graph, layers)
    given, made = ([v.name for v in values] for values in (regions.inputs, regions.outputs))
    numbers = {**feeds, **other.run(feeds, taps=[*given, *made])}
    found = Predictor(Model(regions), "opencl").run({name: numbers[name] for name in given})
    return all(np.array_equal(found[name], numbers[name]) for name in made)


def line(name: str, row: dict[str, Any]) -> str:
    if "failed" in row:
        return f"| {name} | {row['failed']} | | | | | | | |"
    ms = row["ms"]
    times = [f"{ms[p]:.3f}" if p in ms else "–" for p in ("fp32", "fp16", "int8")]
    gains = [f"{ms['int8'] / ms[p]:.2f}" if p in ms else "–" for p in ("fp32", "fp16")]
    equal = "yes" if row["equal"] else "by region" if row["equal_by_region"] else "NO"
    cells = [Path(name).stem, row["batch"], f"{row['share']:.1%}", equal, *times, *gains]
    return f"| {' | '.join(map(str, cells))} |"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.opencl.int8", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--only", help="some networks, by name")
    parser.add_argument(
        "--batch", type=int, default=1, help="images at once, of the zoo's networks"
    )
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--tune", default="none", help="none, rapid, normal or exhaustive")
    parser.add_argument("--layers", action="store_true", help="the slowest layers, in the JSON")
    parser.add_argument("--json", type=Path, help="file for every figure")
    args = parser.parse_args()
    report = choose()
    print(f"{report.name}, {report.platform}, driver {report.driver}\n")
    columns = "network", "batch", "share", "equal", "fp32, ms", "fp16, ms", "int8, ms"
    columns = (*columns, "int8 / fp32", "int8 / fp16")
    print(f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|", flush=True)
    names = [*NETWORKS, *(FILES if os.environ.get("LITE_TEST_MODELS") else ())]
    rows: dict[str, dict[str, Any]] = {}
    for name in args.only.split(",") if args.only else names:
        try:
            rows[name] = examine(name, args)
        except Exception as error:  # noqa: BLE001  one network must not end the benchmark
            rows[name] = {"failed": f"{type(error).__name__}: {error}"[:300]}
        print(line(name, rows[name]), flush=True)
        if args.json:
            args.json.write_text(json.dumps({"device": report.name, "rows": rows}, indent=1))
    good = [r for r in rows.values() if r.get("equal_by_region") and r["share"] >= LEAST_SHARE]
    return 0 if len(good) == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
