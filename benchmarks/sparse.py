"""Sparse 1x1 convolutions against our dense ones: processor time.

    python -m benchmarks.sparse [--sparsity 0.8,0.9] [--isa avx2] [--arm]

The layers are the 1x1 convolutions of MobileNetV1 at 224x224, with unstructured random zeros. Both
forms live in one process and take turns; a ratio is that of one thread's least processor times.
With --arm it is that of the instructions that emulated AArch64 executes in four of the layers.
"""

from __future__ import annotations

import argparse

import numpy as np
from lite_engine import Predictor
from lite_engine.backends.cpu.native import NativeProgram
from lite_engine.ir import Graph, from_text
from lite_engine.model_file import Model
from lite_engine.ops import infer_types
from lite_engine.plan.program import WeightTable, encode
from lite_engine.profile import profile
from lite_engine.runtime import host_target

from benchmarks.int8_gain import least_ms

#: Channels in, channels out, height and width.
LAYERS = (
    (32, 64, 112), (64, 128, 56), (128, 128, 56), (128, 256, 28), (256, 256, 28), (256, 512, 14),
    (512, 512, 14), (512, 1024, 7), (1024, 1024, 7),
)  # fmt: skip


def layer(weight: np.ndarray, size: int) -> Graph:
    o, c = weight.shape[:2]
    graph = from_text(
        f'graph "g" {{\n  input x: f32[1,{c},{size},{size}]\n  const w: f32[{o},{c},1,1] = @0\n'
        '  "c": y = Conv(x, w) {activation="Relu"}\n  output y\n}',
        [weight],
    )
    infer_types(graph)
    return graph


def program(graph: Graph, isa: str | None, kernel: str = "") -> NativeProgram:
    tuning = {"c": kernel} if kernel else {}
    plan = Predictor(Model(graph), host_target(), threads=1, tuning=tuning).plan()
    table = WeightTable()
    data = encode(plan, table)
    return NativeProgram(data, table.blobs, threads=1, max_isa=isa)


def counted(graph: Graph, x: np.ndarray) -> int:
    """Instructions of the layer on emulated AArch64."""
    found = profile(Predictor(graph, "arm", threads=1), {"x": x}, runs=1, warmup=0)
    return int(next(row.instructions for row in found.layers if row.op == "Conv") or 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sparsity", default="0.8,0.9")
    parser.add_argument("--isa")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--arm", action="store_true")
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    for share in (float(s) for s in args.sparsity.split(",")):
        ratios = []
        for c, o, size in LAYERS:
            w = rng.standard_normal((o, c, 1, 1)).astype(np.float32)
            w *= rng.random(w.shape) >= share
            graph, x = layer(w, size), rng.standard_normal((1, c, size, size)).astype(np.float32)
            if args.arm:
                if c == o:
                    full = rng.standard_normal(w.shape).astype(np.float32)
                    ratio = counted(layer(full, size), x) / counted(graph, x)
                    print(f"{share:.0%} zeros  {c:4} -> {o:4} at {size:3}  {ratio:.2f} times")
                continue
            both = [program(graph, args.isa, "f32_conv2d_gemm"), program(graph, args.isa)]
            dense, sparse = least_ms(both, [x], args.turns)
            ratios.append(dense / sparse)
            print(f"{share:.0%} zeros  {c:4} -> {o:4} at {size:3}  {dense:.3f} {sparse:.3f} ms  "
                  f"{dense / sparse:.2f} times")  # fmt: skip
        if ratios:
            print(f"{share:.0%} zeros, geometric mean {np.exp(np.mean(np.log(ratios))):.2f} times")


if __name__ == "__main__":
    main()
