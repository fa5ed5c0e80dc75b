"""On a machine with a GPU: is OpenCL right there, and how fast beside PyTorch?

    python -m benchmarks.opencl.run_gpu --out gpu.json [--set zoo|torchvision|wide]
                                        [--nets unet,tv/swin_t,…] [--files FOLDER] [--layers]
                                        [--tune normal]

Prints a line for each network and writes JSON: per network and precision the error against
onnxruntime on the CPU, latency with and without host copies, PyTorch eager and replayed as a CUDA
graph in the same process, and with --layers the slowest layers. `benchmarks.opencl.cases` names the
networks; --files keeps their ONNX files.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.opencl import cases

COMPARED = ("mobilenet_v1", "resnet50", "squeezenet", "resnet18", "unet")

HEADS = {
    "fp32": "fp32, ms | CUDA graph | ratio | with copies",
    "fp16": "fp16, ms | CUDA graph | ratio | with copies",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="gpu.json")
    parser.add_argument("--set", choices=(*cases.SETS,), default="zoo")
    parser.add_argument("--nets", help="some networks, by name")
    parser.add_argument("--files", type=Path, help="folder of the networks' ONNX files")
    parser.add_argument("--precisions", default="fp32,fp16")
    parser.add_argument("--layers", action="store_true")
    parser.add_argument("--tune", default="none", help="none, rapid, normal or exhaustive")
    parser.add_argument("--no-torch", action="store_true")
    parser.add_argument("--runs", type=int, default=100)
    args = parser.parse_args()
    result: dict[str, Any] = {"device": _device(), "nets": {}}
    print(result["device"], flush=True)
    with tempfile.TemporaryDirectory() as folder:
        files = args.files or Path(folder)
        files.mkdir(parents=True, exist_ok=True)
        for name in args.nets.split(",") if args.nets else cases.SETS[args.set]:
            row = _measure(name, files / f"{name.replace('/', '.')}.onnx", args)
            result["nets"][name] = row
            summary = {k: v for k, v in row.items() if not k.startswith("layers")}
            print(name, json.dumps(summary), flush=True)
            for key in row.keys() - summary.keys():
                print("  ", key, *row[key], sep="\n      ", flush=True)
            Path(args.out).write_text(json.dumps(result, indent=1))
    print("", *table(result["nets"]), sep="\n")


def table(rows: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Markdown, of the networks that PyTorch ran too: ms of the kernels and of the graph, and the
    ratios of both without and with host copies, whose geometric means come last."""
    beside = {p: {n: r[p] for n, r in rows.items() if "of_graph" in r.get(p, {})} for p in HEADS}
    yield "| network | " + " | ".join(HEADS.values()) + " |"
    yield "|---|" + "---|" * 4 * len(HEADS)
    for name in rows:
        cells = [_cells(beside[p][name]) if name in beside[p] else "– | – | – | –" for p in HEADS]
        yield f"| {name} | {' | '.join(cells)} |"
    means = []
    for found in beside.values():
        for key in ("of_graph", "whole_of_graph"):
            logs = np.log([row[key] for row in found.values()] or [np.nan])
            means.append(f"**{np.exp(logs.mean()):.2f}**")
        means[-2:] = ["", "", *means[-2:]]
    yield f"| geometric mean | {' | '.join(means)} |"


def _cells(row: dict[str, Any]) -> str:
    values = (_kernels(row), row["torch"]["graph_ms"], row["of_graph"], row["whole_of_graph"])
    return " | ".join(f"{x:.2f}" for x in values)


def _kernels(row: dict[str, Any]) -> float:
    """ms of the kernels: until they have finished, or by their events where a part runs elsewhere
    or a launch costs more than the kernel."""
    return float(min(row.get("kernels_ms", np.inf), row["events_ms"]))


def _device() -> dict[str, Any]:
    from dataclasses import asdict

    from lite_engine.backends.opencl.device import choose

    return asdict(choose())


def _measure(name: str, path: Path, args: argparse.Namespace) -> dict[str, Any]:
    from lite_engine import Predictor, optimize
    from lite_engine.runtime.inputs import random_feeds
    from lite_engine.runtime.tune import tune

    module, feeds = cases.build(name, path)
    model = optimize(path)
    feeds = feeds or random_feeds(model.graph)
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
            of_torch = _beside_torch(row[precision], module, name, precision, feeds, args.runs)
            row[precision].update(of_torch)
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


def _beside_torch(
    ours: dict[str, Any], module: Any, name: str, precision: str, feeds: dict[str, np.ndarray],
    runs: int,
) -> dict[str, Any]:  # fmt: skip
    """PyTorch's latency, and ours over that of its graph: kernels, and calls with host copies."""
    try:
        found = _torch(module, name, precision, feeds, runs)
    except Exception as error:  # noqa: BLE001  some networks cannot be captured
        return {"torch": f"{type(error).__name__}: {error}"[:300]}
    return {
        "torch": found,
        "of_graph": round(_kernels(ours) / found["graph_ms"], 2),
        "whole_of_graph": round(ours["whole_ms"] / found["graph_whole_ms"], 2),
    }


def _torch(
    module: Any, name: str, precision: str, feeds: dict[str, np.ndarray], runs: int
) -> dict[str, float]:
    """ms of PyTorch on the same GPU, TF32 off: eager, replayed as one CUDA graph, and the graph
    with copies from and to pinned memory of the host."""
    import torch

    from benchmarks.opencl.torch_models import build

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    dtype = torch.float16 if precision == "fp16" else torch.float32
    if module is None:
        model, *inputs = build(name)
    else:
        model, inputs = cases.fresh(module, dtype, "cuda"), cases.tensors(feeds, dtype, "cuda")
    model, inputs = model.to(dtype), [x.to(dtype) if x.is_floating_point() else x for x in inputs]
    with torch.no_grad():

        def eager() -> None:
            model(*inputs)

        eager_ms = _timed(eager, runs)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            made = model(*inputs)
        made = made.values() if isinstance(made, dict) else made
        made = [made] if isinstance(made, torch.Tensor) else list(made)
        given = [x.cpu().pin_memory() for x in inputs]
        taken = [torch.empty_like(y, device="cpu").pin_memory() for y in made]

        def whole() -> None:
            for x, value in zip(inputs, given, strict=True):
                x.copy_(value, non_blocking=True)
            graph.replay()
            for y, value in zip(made, taken, strict=True):
                value.copy_(y, non_blocking=True)

        return {
            "eager_ms": eager_ms,
            "graph_ms": _timed(graph.replay, runs),
            "graph_whole_ms": _timed(whole, runs),
        }


def _timed(work: Callable[[], None], runs: int) -> float:
    """Median ms until the GPU has finished."""
    import torch

    seconds = []
    for _ in range(runs + 10):
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    return _ms(seconds)


if __name__ == "__main__":
    main()
