"""On a machine with a GPU: is OpenCL right there, and how fast beside PyTorch?

    python -m benchmarks.opencl.run_gpu --out gpu.json [--nets unet,tv/swin_t,…] [--layers]
                                        [--tune normal]

Prints a line for each network and writes JSON: per network and precision the error against
onnxruntime on the CPU, latency with and without host copies, PyTorch eager and replayed as a CUDA
graph in the same process, and with --layers the slowest layers. Networks are those of
`benchmarks/zoo`, and with `tv/` those of `benchmarks.opencl.networks`, all of which PyTorch has.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import zoo
from benchmarks.opencl.networks import FAMILIES, SIDE, export

COMPARED = ("mobilenet_v1", "resnet50", "squeezenet", "resnet18", "unet")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="gpu.json")
    parser.add_argument("--nets", default=",".join(zoo.NAMES))
    parser.add_argument("--precisions", default="fp32,fp16")
    parser.add_argument("--layers", action="store_true")
    parser.add_argument("--tune", default="none", help="none, rapid, normal or exhaustive")
    parser.add_argument("--no-torch", action="store_true")
    parser.add_argument("--runs", type=int, default=100)
    args = parser.parse_args()
    result: dict[str, Any] = {"device": _device(), "nets": {}}
    print(result["device"], flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for name in args.nets.split(","):
            row = _measure(name, Path(folder), args)
            result["nets"][name] = row
            summary = {k: v for k, v in row.items() if not k.startswith("layers")}
            print(name, json.dumps(summary), flush=True)
            for key in row.keys() - summary.keys():
                print("  ", key, *row[key], sep="\n      ", flush=True)
            Path(args.out).write_text(json.dumps(result, indent=1))


def _device() -> dict[str, Any]:
    from dataclasses import asdict

    from lite_engine.backends.opencl.device import choose

    return asdict(choose())


def _measure(name: str, folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    from lite_engine import Predictor, optimize
    from lite_engine.runtime.inputs import random_feeds
    from lite_engine.runtime.tune import tune

    path = folder / "network.onnx"
    module = export(name, path)
    model = optimize(path)
    feeds = random_feeds(model.graph)
    exact = _onnxruntime(path, feeds)
    row: dict[str, Any] = {}
    for precision in args.precisions.split(","):
        try:
            predictor = Predictor(model, "opencl", precision=precision)
            start = time.perf_counter()
            found = predictor.run(feeds)
            first = time.perf_counter() - start
        except Exception as error:  # noqa: BLE001  one network must not end the benchmark
            row[precision] = {"failed": f"{type(error).__name__}: {error}"[:300]}
            continue
        row[precision] = {"error": _error(found, exact), "first_s": round(first, 2)}
        row[precision].update(_latency(predictor, feeds, args.runs))
        if args.tune != "none":
            start = time.perf_counter()
            tune(predictor, args.tune)
            row[precision]["tuned"] = {
                "tuning_s": round(time.perf_counter() - start, 2),
                "error": _error(predictor.run(feeds), exact),
                **_latency(predictor, feeds, args.runs),
            }
        if args.layers:
            row[f"layers_{precision}"] = _layers(predictor)
        if not args.no_torch and (module is not None or name in COMPARED):
            found = _torch(module, name, precision, args.runs)
            row[precision]["torch"] = found
            ours = min(row[precision].get("kernels_ms", np.inf), row[precision]["events_ms"])
            row[precision]["of_graph"] = round(ours / found["graph_ms"], 2)
    return row


def _error(found: dict[str, np.ndarray], exact: dict[str, np.ndarray]) -> float:
    """The worst output's relative L2 error."""
    return max(
        float(np.linalg.norm(found[n] - y) / (np.linalg.norm(y) + 1e-30)) for n, y in exact.items()
    )


def _onnxruntime(path: Path, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds)))


def _latency(predictor: Any, feeds: dict[str, np.ndarray], runs: int) -> dict[str, float]:
    """ms: whole call with host copies, kernels enqueued and finished, kernels by their own
    events."""
    execution = predictor.execution()
    ordered = [feeds[n] for n in predictor.input_names]
    whole, kernels, device = [], [], []
    for _ in range(runs + 10):
        start = time.perf_counter()
        execution.run(ordered)
        whole.append(time.perf_counter() - start)
    for _ in range(30):
        execution.run(ordered)
        spans = [t for t in execution.times() if t.end_ns]
        device.append(sum(t.end_ns - t.start_ns for t in spans) / 1e9)
    parts = [p.executable for p in execution._parts if p.segment.backend == "opencl"]
    if len(parts) == 1:
        for _ in range(runs + 10):
            start = time.perf_counter()
            parts[0].enqueue()
            parts[0].finish()
            kernels.append(time.perf_counter() - start)
    out = {"whole_ms": _ms(whole), "events_ms": _ms(device)}
    if kernels:
        out["kernels_ms"] = _ms(kernels)
    return out


def _ms(seconds: list[float]) -> float:
    return round(float(np.median(seconds[10:])) * 1e3, 4)


def _layers(predictor: Any) -> list[dict[str, Any]]:
    execution = predictor.execution()
    rows = []
    for step, t in zip(execution.plan.steps, execution.times()):
        us = (t.end_ns - t.start_ns) / 1e3
        dims = execution.plan.tensors[step.outputs[0]].dims
        rate = round(step.flops / us / 1e3) if us else 0
        rows.append({"us": us, "op": step.op, "kernel": step.kernel, "out": dims, "gflops": rate})
    return sorted(rows, key=lambda r: -r["us"])[:14]


def _torch(module: Any, name: str, precision: str, runs: int) -> dict[str, float]:
    """ms of PyTorch on the same GPU, TF32 off: eager, and replayed as one CUDA graph."""
    import torch

    from benchmarks.opencl.torch_models import build

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    if module is None:
        model, x = build(name)
    else:
        side = FAMILIES.get(name.removeprefix("tv/"), SIDE)
        model, x = module.cuda(), torch.randn(1, 3, side, side, device="cuda")
    dtype = torch.float16 if precision == "fp16" else torch.float32
    model, x = model.to(dtype), x.to(dtype)
    with torch.no_grad():
        eager = []
        for _ in range(runs + 10):
            start = time.perf_counter()
            model(x)
            torch.cuda.synchronize()
            eager.append(time.perf_counter() - start)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            model(x)
        replay = []
        for _ in range(runs + 10):
            start = time.perf_counter()
            graph.replay()
            torch.cuda.synchronize()
            replay.append(time.perf_counter() - start)
    return {"eager_ms": _ms(eager), "graph_ms": _ms(replay)}


if __name__ == "__main__":
    main()
