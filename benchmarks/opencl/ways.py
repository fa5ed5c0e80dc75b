"""Every way to compute a product on this GPU, beside what the chooser expects of it.

    python -m benchmarks.opencl.ways [--sizes 197x3072x768,…] [--precision fp32|fp16|int8] [--runs 15]

A size is rows x columns x depth; with int8 `8x14x14x256x256` is a convolution 3x3 of so many images,
rows, columns, channels and filters. µs: least sum of the device's own events over a layer's kernels.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from lite_engine.backends.opencl import gpu_convolutions, integer_gpu_convolutions
from lite_engine.backends.opencl.cases.graphs import single, some
from lite_engine.backends.opencl.device import choose, open_device
from lite_engine.backends.opencl.variants import FLOATS, Product, estimate_s
from lite_engine.plan import make_plan
from lite_engine.runtime.execute import Execution

#: Products of ViT, Swin and ConvNeXt, batch 1.
SIZES = (
    "197x768x768,197x2304x768,197x3072x768,197x768x3072,3136x288x96,3136x384x96,3136x96x384,"
    "784x768x192,784x192x768,196x1536x384,196x384x1536,49x3072x768,49x768x3072"
)


def microseconds(execution: Execution, feeds: list[np.ndarray], runs: int) -> float:
    best = float("inf")
    for _ in range(runs):
        execution.run(feeds)
        steps = zip(execution.plan.steps, execution.times(), strict=True)
        spans = [t.end_ns - t.start_ns for s, t in steps if s.op in ("Gemm", "QLinearConv")]
        best = min(best, sum(spans) / 1e3)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", default=SIZES)
    parser.add_argument("--precision", default="fp16", choices=("fp32", "fp16", "int8"))
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--most", type=int, default=12, help="ways of a size, the expected first")
    args = parser.parse_args()
    profile = open_device(choose()).profile
    rng = np.random.default_rng(0)
    ways = gpu_convolutions.ranked
    for text in args.sizes.split(","):
        numbers = [int(n) for n in text.split("x")]
        if args.precision == "int8":
            _integers(numbers, profile, args)
            continue
        m, n, k = numbers
        size = Product(m, n, k, k)
        itemsize = 2 if args.precision == "fp16" else 4
        ranked = ways(size, profile.compute_units, itemsize if profile.matrix_units else 0)
        graph = single("Gemm", (m, k), some(k, n), some(n))
        feeds = [rng.standard_normal((m, k)).astype(np.float32)]
        for variant in ranked[: args.most]:
            gpu_convolutions.ranked = lambda *_, v=variant: (v,)  # type: ignore[assignment]
            execution = Execution(make_plan(graph, "opencl", precision=args.precision), threads=1)
            us = microseconds(execution, feeds, args.runs)
            expected = estimate_s(size, variant, profile.compute_units, FLOATS) * 1e6
            print(f"{text} {variant} {us:.1f} expected {expected:.1f}", flush=True)


def _integers(numbers: list[int], profile: Any, args: argparse.Namespace) -> None:
    from lite_engine.backends.opencl.variants import INTEGERS
    from lite_engine.model_file import Model
    from lite_workbench.quantizing import calibrated

    images, height, width, channels, filters = numbers
    rng = np.random.default_rng(0)
    shape = (images, channels, height, width)
    w = some(filters, channels, 3, 3)
    graph = single("Conv", shape, w, some(filters), pads=[1, 1, 1, 1])
    x = rng.standard_normal(shape).astype(np.float32)
    model = calibrated(Model(graph), [{graph.inputs[0].name: y} for y in (x, -x)])
    ways = integer_gpu_convolutions.ways
    size = Product(images * height * width, filters, channels * 9 // 4, channels)
    found = list(ways_of(model, profile))
    for variant in found[: args.most]:
        integer_gpu_convolutions.ways = lambda *_, v=variant: (v,)
        execution = Execution(make_plan(model.graph, "opencl"), threads=1)
        us = microseconds(execution, [x], args.runs)
        expected = estimate_s(size, variant, profile.compute_units, INTEGERS) * 1e6
        print(
            f"{'x'.join(map(str, numbers))} {variant} {us:.1f} expected {expected:.1f}", flush=True
        )
    integer_gpu_convolutions.ways = ways


def ways_of(model: Any, profile: Any) -> Any:
    """The ways that the chooser offers for the model's one convolution."""
    offered: list[Any] = []
    ways = integer_gpu_convolutions.ways

    def spy(*given: Any) -> Any:
        offered[:] = ways(*given)
        return offered

    integer_gpu_convolutions.ways = spy
    Execution(make_plan(model.graph, "opencl"), threads=1)
    integer_gpu_convolutions.ways = ways
    return [v for v in offered if not v.direct]


if __name__ == "__main__":
    main()
