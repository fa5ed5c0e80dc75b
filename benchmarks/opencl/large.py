"""Layers large enough to fill a GPU: how near each comes to the device's measured roofs.

    python -m benchmarks.opencl.large --out large.json [--tune normal]

Each is a network of one operator, timed over many runs in a row, because the device's own events
add some µs to each; `share` is the least time that its arithmetic (fp32 roof, also in fp16) or its
bytes need, over the time taken. A Winograd convolution does a quarter of the multiplications it is
credited with, and matrix units are no part of the roof, so a share may exceed 1.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from lite_engine import Predictor
from lite_engine.backends.opencl.device import choose, open_device
from lite_engine.backends.opencl.roofs import Roofs, measure
from lite_engine.errors import LiteError
from lite_engine.ir import DType, Graph, Value
from lite_engine.runtime.tune import tune

_RUNS = 40
RNG = np.random.default_rng(7)


def _weights(*shape: int) -> np.ndarray:
    return (RNG.standard_normal(shape) * np.prod(shape[1:]) ** -0.5).astype(np.float32)


def _graph(op: str, shape: tuple[int, ...], *constants: np.ndarray, **attrs: Any) -> Graph:
    graph = Graph(op)
    x = Value("x", DType.F32, shape)
    graph.inputs = [x]
    values = [graph.constant(c) for c in constants]
    graph.outputs = [graph.add(op, [x, *values], attrs, name="measured").output]
    return graph


def _conv(channels: int, side: int, outputs: int, kernel: int, group: int = 1) -> Graph:
    w = _weights(outputs, channels // group, kernel, kernel)
    pads = [kernel // 2] * 4
    return _graph("Conv", (1, channels, side, side), w, _weights(outputs), pads=pads, group=group)


def _pair(side: int) -> Graph:
    """A product of two computed matrices."""
    graph = Graph("MatMul")
    a, b = (Value(n, DType.F32, (side, side)) for n in "ab")
    graph.inputs = [a, b]
    graph.outputs = [graph.add("MatMul", [a, b], {}, name="measured").output]
    return graph


def _turned(side: int) -> Graph:
    """A transpose of what the device has computed: a layout change there."""
    graph = _graph("Relu", (side, side))
    graph.nodes[0].name = "before"
    graph.outputs = [graph.add("Transpose", graph.outputs, {"perm": [1, 0]}).output]
    return graph


LAYERS: dict[str, Any] = {
    "product 2048": lambda: _graph("Gemm", (2048, 2048), _weights(2048, 2048)),
    "product 2048, both computed": lambda: _pair(2048),
    "1x1 56x56 256-256": lambda: _conv(256, 56, 256, 1),
    "1x1 128x128 256-256": lambda: _conv(256, 128, 256, 1),
    "3x3 56x56 128-128": lambda: _conv(128, 56, 128, 3),
    "3x3 128x128 128-128": lambda: _conv(128, 128, 128, 3),
    "3x3 256x256 64-64": lambda: _conv(64, 256, 64, 3),
    "5x5 128x128 64-64": lambda: _conv(64, 128, 64, 5),
    "depthwise 3x3 256x256 256": lambda: _conv(256, 256, 256, 3, 256),
    "relu 64 M": lambda: _graph("Relu", (1 << 26,)),
    "add 32 M": lambda: _graph("Add", (1, 64, 724, 724), _weights(64, 1, 1)),
    "max pool 2x2 512x512 64": lambda: _graph(
        "MaxPool", (1, 64, 512, 512), kernel_shape=[2, 2], strides=[2, 2]
    ),
    "softmax 32768x1024": lambda: _graph("Softmax", (32768, 1024), axis=-1),
    "layer norm 32768x768": lambda: _graph(
        "LayerNormalization", (32768, 768), _weights(768), _weights(768), axis=-1
    ),
    "reduce mean 4096x4096": lambda: _graph("ReduceMean", (4096, 4096), np.array([-1])),
    "resize x2 256x256 64": lambda: _graph(
        "Resize", (1, 64, 256, 256), np.zeros(0, np.float32), np.float32([1, 1, 2, 2]),
        mode="linear",
    ),
    "transpose 4096x4096": lambda: _turned(4096),
}  # fmt: skip


def measured(graph: Graph, precision: str, effort: str) -> tuple[float, int, int]:
    """Best µs of the operator's own kernels, its flops, its bytes."""
    predictor = Predictor(graph, "opencl", precision=precision)
    execution = predictor.execution() if effort == "none" else tune(predictor, effort).execution
    feeds = [RNG.standard_normal(v.shape, np.float32) for v in graph.inputs]  # type: ignore[arg-type]
    names = {s.name for s in execution.plan.steps}
    name = "measured" if "measured" in names else "copy_relayout"  # a transpose is that change
    execution.run(feeds)
    executable = next(p.executable for p in execution._parts if p.segment.backend == "opencl")
    step = next(s for s in execution.plan.steps if s.name == name or s.kernel == name)
    best = min(executable.seconds_of(name, _RUNS) for _ in range(8)) * 1e6
    touched = {i for i in (*step.inputs, *step.outputs) if i >= 0}
    nbytes = sum(execution.plan.tensors[i].nbytes for i in touched)
    return best, step.flops, nbytes


def table(roofs: Roofs, effort: str, names: list[str]) -> dict[str, Any]:
    rows: dict[str, Any] = {}
    for name in names:
        row: dict[str, Any] = {}
        for precision in ("fp32", "fp16"):
            try:
                us, flops, nbytes = measured(LAYERS[name](), precision, effort)
            except LiteError as error:
                row[precision] = {"failed": str(error)}
                continue
            row[precision] = {
                "us": round(us, 1), "gflops": round(flops / us / 1e3),
                "gbytes_per_s": round(nbytes / us / 1e3),
                "share": round(roofs.least_us(flops, nbytes) / us, 2),
            }  # fmt: skip
        if "us" in row["fp32"] and "us" in row["fp16"]:
            row["gain"] = round(row["fp32"]["us"] / row["fp16"]["us"], 2)
        rows[name] = row
        print(f"{name:30}", json.dumps(row), flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="large.json")
    parser.add_argument("--tune", default="normal", help="none, rapid, normal or exhaustive")
    parser.add_argument("--layers", default=",".join(LAYERS), help="some of them, by name")
    args = parser.parse_args()
    device = open_device(choose())
    roofs = measure(device)
    print(device.report.name, roofs.to_dict(), flush=True)
    names = [n for n in LAYERS if n in args.layers]
    rows = table(roofs, args.tune, names)
    result = {"device": device.report.name, "roofs": roofs.to_dict(), "layers": rows}
    Path(args.out).write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
