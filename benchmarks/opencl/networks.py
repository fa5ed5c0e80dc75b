"""Is OpenCL right on this device? Many networks, fp32 and fp16, against exact results.

    python -m benchmarks.opencl.networks [--set zoo|torchvision|wide|all] [--only NAME,…]
                                         [--workers 4] [--json FILE]

The zoo of `benchmarks/zoo`, against onnxruntime on the CPU; one network of every classification and
segmentation family of torchvision and the wide set of `benchmarks/wide` (random weights, exported
to ONNX here; they need torch, torchvision, timm and transformers), against PyTorch in float64, in
which nothing of what is measured is the oracle's own rounding. Prints a Markdown table; exit status
1 when a network fails or disagrees, with its reason below the table. Each network runs in a process
of its own, so that a driver that crashes costs one row.

`share` is the part of the layers, and of their time, that ran on OpenCL.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.opencl import cases

#: Relative L2 error of an output: sums of up to thousands of products in another order in fp32;
#: in fp16 a few bits of ten are lost along a hundred layers.
LIMITS = {"fp32": 1e-4, "fp16": 3e-2}
#: Where PyTorch itself, in the same precision on this GPU, is off by more than the limit, ours may
#: be off by this much of it: two orders of summation differ by about as much as each is off.
OF_TORCH = 1.5
TIMEOUT_S = 400
RUNS = 20


def examine(name: str) -> dict[str, Any]:
    """One network's row: errors by precision, share on OpenCL, ms."""
    import onnxruntime
    from lite_engine import Predictor, optimize
    from lite_engine.runtime.inputs import random_feeds

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "network.onnx"
        module, feeds = cases.build(name, path)
        model = optimize(path)
        feeds = feeds or random_feeds(model.graph)
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        names = [o.name for o in session.get_outputs()]
        exact = dict(zip(names, session.run(names, feeds), strict=True))
    if module is not None:
        exact = dict(zip(names, _torch(module, feeds, "float64", "cpu"), strict=True))
    row: dict[str, Any] = {"layers": len(model.graph.nodes)}
    if not all(np.any(y) for y in exact.values()):
        return {"failed": "an output is zero everywhere and proves nothing"}
    for precision in LIMITS:
        start = time.perf_counter()
        predictor = Predictor(model, "opencl", precision=precision)
        found = predictor.run(feeds)
        first_s = time.perf_counter() - start
        execution = predictor.execution()
        ordered = [feeds[n] for n in predictor.input_names]
        best = min(_seconds(execution, ordered) for _ in range(RUNS))
        row[precision] = {
            "error": error_of(found, exact),
            "ms": round(best * 1e3, 3),
            "first_s": round(first_s, 1),
            **_on_opencl(predictor),
        }
        if module is not None:
            row[precision].update(_torch_error(module, precision, feeds, exact))
    return row


def _seconds(execution: Any, ordered: list[np.ndarray]) -> float:
    start = time.perf_counter()
    execution.run(ordered)
    return time.perf_counter() - start


def _on_opencl(predictor: Any) -> dict[str, float]:
    """Layers on OpenCL and their time, as parts of all."""
    share = predictor.shares().get("opencl")
    layers, time_ = (share.layer_share, share.time_share) if share else (0.0, 0.0)
    return {"layer_share": layers, "time_share": time_ or 0.0}


def error_of(found: dict[str, np.ndarray], exact: dict[str, np.ndarray]) -> float:
    """The worst output's relative L2 error; NaN counts as infinite."""
    worst = 0.0
    for name, y in exact.items():
        error = float(np.linalg.norm(1.0 * found[name] - y) / (np.linalg.norm(1.0 * y) + 1e-30))
        worst = max(worst, error if np.isfinite(error) else np.inf)
    return worst


def _torch(module: Any, feeds: dict[str, np.ndarray], dtype: str, device: str) -> list[np.ndarray]:
    """The module's outputs in PyTorch, in the order of its ONNX file."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    kind = getattr(torch, dtype)
    with torch.no_grad():
        made = cases.fresh(module, kind, device)(*cases.tensors(feeds, kind, device))
    values = made.values() if isinstance(made, dict) else made
    values = [values] if isinstance(values, torch.Tensor) else values
    return [v.double().cpu().numpy() for v in values]


def _torch_error(
    module: Any, precision: str, feeds: dict[str, np.ndarray], exact: dict[str, np.ndarray]
) -> dict[str, Any]:
    """`torch`: the error of PyTorch itself on this GPU; None without CUDA, where it overflows, and
    where it cannot run the network, which `torch_failed` says."""
    import torch

    if not torch.cuda.is_available():
        return {"torch": None}
    dtype = "float16" if precision == "fp16" else "float32"
    try:
        found = _torch(module, feeds, dtype, "cuda")
    except RuntimeError as error:  # our own figures do not depend on it
        return {"torch": None, "torch_failed": str(error).split("\n")[0]}
    own = error_of(dict(zip(exact, found, strict=True)), exact)
    return {"torch": own if np.isfinite(own) else None}


def reason(row: dict[str, Any]) -> str:
    """Why a row does not count as right; empty when it does."""
    if "failed" in row:
        return str(row["failed"])
    for precision, limit in LIMITS.items():
        allowed = max(limit, OF_TORCH * (row[precision].get("torch") or 0.0))
        if not row[precision]["error"] <= allowed:
            return (
                f"{precision}: error {row[precision]['error']:.1e}, at most {allowed:.1e} expected"
            )
    return ""


def _in_own_process(name: str) -> dict[str, Any]:
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "benchmarks.opencl.networks",
        "--examine",
        name,
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return {"failed": f"no result within {TIMEOUT_S} s"}
    for line in reversed(done.stdout.splitlines()):
        if line.startswith("{"):
            return dict(json.loads(line))
    said = [x for x in done.stderr.strip().splitlines() if x.strip()] or ["no message"]
    return {"failed": f"exit status {done.returncode}: {said[-1]}"}


def _cells(name: str, row: dict[str, Any]) -> str:
    if "failed" in row:
        return f"| {name}{' | –' * 6} |"
    full, half = row["fp32"], row["fp16"]
    share = f"{full['layer_share']:.0%} / {full['time_share']:.0%}"
    errors = " | ".join(
        f"{part['error']:.0e}" + (f" ({part['torch']:.0e})" if part.get("torch") else "")
        for part in (full, half)
    )
    return (
        f"| {name} | {row['layers']} | {share} | {errors} | {full['ms']:.2f} | {half['ms']:.2f} |"
    )


def _device() -> tuple[str, str]:
    """The device in a line, and what it should have and was not found to have."""
    from lite_engine.backends.opencl.device import choose, open_device

    device = open_device(choose())
    profile, report = device.profile, device.report
    has = [n for n in ("fp16", "matrix_units", "integer_dot") if getattr(profile, n)]
    # Ampere and later.
    capable = getattr(device.device, "compute_capability_major_nv", 0) >= 8
    lacking = capable and not (profile.fp16 and profile.matrix_units)
    line = f"{report.name}, driver {report.driver}, {report.version}: {', '.join(has) or 'fp32'}"
    return line, "fp16 or matrix units are not used on a GPU that has them" if lacking else ""


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.opencl.networks", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--set", choices=(*cases.SETS, "all"), default="all")
    parser.add_argument("--only", help="some networks, by name")
    parser.add_argument("--workers", type=int, default=4, help="networks at a time")
    parser.add_argument("--json", type=Path, help="file for every figure")
    parser.add_argument("--examine", help=argparse.SUPPRESS)  # one network, in this process
    args = parser.parse_args()
    if args.examine:
        print(json.dumps(examine(args.examine)))
        return 0
    names = [n for key, some in cases.SETS.items() if args.set in (key, "all") for n in some]
    names = args.only.split(",") if args.only else names
    device, lacking = _device()
    print(f"{device}\n")
    print("| network | layers | on OpenCL: layers / time | error fp32 (PyTorch's) | fp16 | "
          "ms fp32 | fp16 |\n|---|---|---|---|---|---|---|", flush=True)  # fmt: skip
    rows: dict[str, dict[str, Any]] = {}
    with ThreadPoolExecutor(args.workers) as pool:
        for name, row in zip(names, pool.map(_in_own_process, names), strict=True):
            rows[name] = row
            print(_cells(name, row), flush=True)
    wrong = {name: text for name, row in rows.items() if (text := reason(row))}
    print(f"\n{len(rows) - len(wrong)} of {len(rows)} networks agree")
    for name, text in wrong.items():
        print(f"- {name}: {text}")
    for name, row in rows.items():
        for precision in LIMITS:
            if said := row.get(precision, {}).get("torch_failed"):
                print(f"- {name}: no figure of PyTorch's in {precision}: {said}")
    if lacking:
        print(f"- {lacking}")
    if args.json:
        args.json.write_text(json.dumps({"device": device, "networks": rows}, indent=1))
    return 1 if wrong or lacking else 0


if __name__ == "__main__":
    sys.exit(main())
