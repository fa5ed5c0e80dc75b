"""Sparse 1x1 convolutions against our dense ones: processor time.

    python -m benchmarks.sparse [--sparsity 0.8,0.9] [--pattern 1x4] [--int8] [--isa avx2] [--arm]

The layers are the 1x1 convolutions of MobileNetV1 at 224x224, with random zeros: anywhere, or in
the blocks of a pattern, and the same without zeros. Both live in one process and take turns; a
ratio is that of one thread's least processor times. With --arm it is that of the instructions that
emulated AArch64 executes in four of the layers.

With --xnnpack XNNPACK's sparse inference computes these four layers, too, through LiteRT. XNNPACK
has it on ARM, not on x86 with AVX. With --arm the option takes the command of an AArch64 Python
that has ai-edge-litert, under an emulator with our counting plugin, like

    --xnnpack "qemu-aarch64 -L ROOT -cpu cortex-a76 -plugin liblite_count.so,out=n python3.11"

(ROOT needs a /proc/cpuinfo of that CPU: XNNPACK does not start with one of x86.)
"""

from __future__ import annotations

import argparse
import shlex

import numpy as np
from lite_engine import Predictor
from lite_engine.backends.cpu.native import NativeProgram
from lite_engine.ir import Graph, from_text
from lite_engine.model_file import Model
from lite_engine.ops import infer_types
from lite_engine.plan.program import WeightTable, encode
from lite_engine.profile import profile
from lite_engine.prune.patterns import Pattern, keep
from lite_engine.runtime import host_target

from benchmarks.int8_gain import least_ms
from benchmarks.peers import xnnpack_sparse

#: Channels in, channels out, height and width.
LAYERS = (
    (32, 64, 112), (64, 128, 56), (128, 128, 56), (128, 256, 28), (256, 256, 28), (256, 512, 14),
    (512, 512, 14), (512, 1024, 7), (1024, 1024, 7),
)  # fmt: skip
#: Dense and sparse kernels of floats and of integers.
KERNELS = {
    False: ("f32_conv2d_gemm", "f32_conv_sparse"),
    True: ("i8_conv2d_gemm", "i8_conv_sparse"),
}


def layer(weight: np.ndarray, size: int, integers: bool = False) -> Graph:
    """A 1x1 convolution with these weights (outputs, inputs), a ReLU behind it."""
    o, c = weight.shape
    shape = f"[1,{c},{size},{size}]"
    if not integers:
        graph = from_text(
            f'graph "g" {{\n  input x: f32{shape}\n  const w: f32[{o},{c},1,1] = @0\n'
            '  "c": y = Conv(x, w) {activation="Relu"}\n  output y\n}',
            [weight.reshape(o, c, 1, 1)],
        )
    else:
        scale, zero = np.full(o, 0.01, np.float32), np.zeros(o, np.int8)
        graph = from_text(
            f'graph "g" {{\n  input x: u8{shape}\n  const s: f32[] = @0\n  const z: u8[] = @1\n'
            f"  const w: i8[{o},{c},1,1] = @2\n  const ws: f32[{o}] = @3\n"
            f"  const wz: i8[{o}] = @4\n"
            '  "c": y = QLinearConv(x, s, z, w, ws, wz, s, z)\n  output y\n}',
            [np.float32(0.02), np.uint8(0), weight.reshape(o, c, 1, 1), scale, zero],
        )
    infer_types(graph)
    return graph


def drawn(
    rng: np.random.Generator, o: int, c: int, share: float, pattern: Pattern, integers: bool
) -> np.ndarray:
    """Weights (outputs, inputs) of which this share is 0."""
    w = rng.standard_normal((o, c)).astype(np.float32)
    kept = keep(rng.random((o, c)), share, pattern)
    return (np.clip(np.rint(w * 40), -127, 127).astype(np.int8) if integers else w) * kept


def program(graph: Graph, kernel: str, isa: str | None) -> NativeProgram:
    plan = Predictor(Model(graph), host_target(), threads=1, tuning={"c": kernel}).plan()
    table = WeightTable()
    data = encode(plan, table)
    return NativeProgram(data, table.blobs, threads=1, max_isa=isa)


def counted(graph: Graph, kernel: str, x: np.ndarray) -> int:
    """Instructions of the layer on emulated AArch64."""
    predictor = Predictor(graph, "arm", threads=1, tuning={"c": kernel})
    found = profile(predictor, {"x": x}, runs=1, warmup=0)
    return int(next(row.instructions for row in found.layers if "Conv" in row.op) or 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sparsity", default="0.8,0.9")
    parser.add_argument("--pattern", default="unstructured")
    parser.add_argument("--int8", action="store_true")
    parser.add_argument("--isa")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--arm", action="store_true")
    parser.add_argument("--xnnpack", nargs="?", const="", metavar="COMMAND")
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    kernels, pattern = KERNELS[args.int8], Pattern.parse(args.pattern)
    for share in (float(s) for s in args.sparsity.split(",")):
        ratios = []
        for c, o, size in LAYERS:
            if (args.arm or args.xnnpack is not None) and c != o:
                continue
            graphs = [
                layer(drawn(rng, o, c, zeros, pattern, args.int8), size, args.int8)
                for zeros in (0.0, share)
            ]
            shape = (1, c, size, size)
            x = rng.integers(0, 256, shape).astype(np.uint8)
            x = x if args.int8 else x.astype(np.float32) / 256
            name = f"{share:.0%} zeros  {c:4} -> {o:4} at {size:3}"
            if args.arm:
                dense, sparse = (counted(*pair, x) for pair in zip(graphs, kernels, strict=True))
                print(f"{name}  {dense:,} {sparse:,} instructions  {dense / sparse:.2f} times")
            else:
                both = [program(*pair, args.isa) for pair in zip(graphs, kernels, strict=True)]
                dense, sparse = least_ms(both, [x], args.turns)
                print(f"{name}  {dense:.3f} {sparse:.3f} ms  {dense / sparse:.2f} times")
            ratios.append(dense / sparse)
            if args.xnnpack is not None:
                w = next(v.const for v in graphs[1].constants() if v.const.ndim == 4)
                theirs = xnnpack_sparse.measured(w.reshape(o, c), size, shlex.split(args.xnnpack))
                print(f"  XNNPACK {theirs:,.3f}, {theirs / sparse:.2f} times ours", flush=True)
        print(f"{share:.0%} zeros, geometric mean {np.exp(np.mean(np.log(ratios))):.2f} times")


if __name__ == "__main__":
    main()
