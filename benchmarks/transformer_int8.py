"""What int8 gains for transformers, and how much of it attention in integers adds.

    python -m benchmarks.transformer_int8 [--nets vit_b16,vit_tiny] [--isa avx512vnni] [--turns 5]
    python -m benchmarks.transformer_int8 --arm

Three programs of each network take turns in one process: float32, int8 with attention in float32,
and int8. Figures are one thread's least processor times. Weights, samples and input are random, so
nothing is said of accuracy. With --arm, the instructions that emulated AArch64 executes in one
attention of 12 heads over 197 tokens, in float32 and in int8.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import onnx
from lite_engine import Predictor, optimize
from lite_engine.backends.cpu.native import NativeProgram
from lite_engine.ir import Graph, from_text
from lite_engine.model_file import Model
from lite_engine.ops import infer_types
from lite_engine.plan.program import WeightTable, encode
from lite_engine.profile import profile
from lite_engine.quantize import Ranges, Scheme, calibrate, prepare, quantize_static
from lite_engine.runtime import host_target
from lite_workbench.quantizing import FastRun, float_graph

from benchmarks.int8_gain import least_ms
from benchmarks.zoo import transformer

NETS: dict[str, Callable[[], onnx.ModelProto]] = {
    "vit_b16": partial(transformer.vit, 768, heads=12, blocks=12),
    "vit_s16": partial(transformer.vit, 384, heads=6, blocks=12),
    "vit_tiny": transformer.vit_tiny,
    "text_encoder": transformer.text_encoder,
}
SAMPLES = 4
#: Of the layer whose instructions are counted.
HEADS, TOKENS, SIZE = 12, 197, 64


def program(graph: Graph, isa: str | None) -> NativeProgram:
    plan = Predictor(Model(graph), host_target(), threads=1).plan()
    table = WeightTable()
    data = encode(plan, table)
    return NativeProgram(data, table.blobs, threads=1, max_isa=isa)


def integers(parent: Graph, ranges: Ranges, keep: frozenset[str], target: str) -> Graph:
    qdq = quantize_static(parent, ranges, Scheme(keep_float=keep))
    return optimize(qdq, targets=[target]).graph


def measure(name: str, isa: str | None, turns: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / f"{name}.onnx"
        onnx.save(NETS[name](), str(source))
        model = optimize(source, targets=[host_target()])
        compare(name, prepare(float_graph(model)), isa, turns)


def compare(name: str, parent: Graph, isa: str | None, turns: int) -> None:
    rng = np.random.default_rng(1)
    (value,) = parent.inputs
    shape = tuple(int(d) for d in value.shape or ())  # type: ignore[arg-type]

    def draw() -> np.ndarray:
        if value.dtype is not None and not value.dtype.is_float:
            return rng.integers(0, 1000, shape)
        return rng.standard_normal(shape).astype(np.float32)

    samples = [{value.name: draw()} for _ in range(SAMPLES)]
    ranges = calibrate(parent, samples, run=FastRun()).ranges("minmax")
    kept = frozenset(n.name for n in parent.nodes if n.op == "Attention")
    forms = [parent, *(integers(parent, ranges, k, host_target()) for k in (kept, frozenset()))]
    programs = [program(graph, isa) for graph in forms]
    fp32, without, whole = least_ms(programs, [samples[0][value.name]], turns)
    print(
        f"{name}: fp32 {fp32:.2f} ms; int8 but attention {without:.2f} ms, {fp32 / without:.2f} "
        f"times; int8 {whole:.2f} ms, {fp32 / whole:.2f} times"
    )


def count_arm() -> None:
    shape = f"[1,{TOKENS},{HEADS * SIZE}]"
    graph = from_text(
        f'graph "g" {{\n  input q: f32{shape}\n  input k: f32{shape}\n  input v: f32{shape}\n'
        f'  "a": y = Attention(q, k, v) {{q_num_heads={HEADS}, kv_num_heads={HEADS}}}\n'
        "  output y\n}"
    )
    infer_types(graph)
    rng = np.random.default_rng(1)
    feeds = [
        {n: rng.standard_normal((1, TOKENS, HEADS * SIZE)).astype(np.float32) for n in "qkv"}
        for _ in range(2)
    ]
    ranges = calibrate(graph, feeds, run=FastRun()).ranges("minmax")
    counts = []
    for form in (graph, integers(graph, ranges, frozenset(), "arm")):
        found = profile(Predictor(form, "arm", threads=1), feeds[0], runs=1, warmup=0)
        counts.append(next(r.instructions for r in found.layers if "Attention" in r.op) or 0)
    print(f"AArch64: {counts[0]:,} instructions in float32, {counts[1]:,} in int8, "
          f"{counts[0] / counts[1]:.2f} times fewer")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--nets", default="vit_b16,vit_s16,vit_tiny,text_encoder")
    parser.add_argument("--isa", help="the highest instruction set, like avx512vnni")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--arm", action="store_true")
    args = parser.parse_args()
    if args.arm:
        count_arm()
        return
    for net in args.nets.split(","):
        measure(net, args.isa, args.turns)


if __name__ == "__main__":
    main()
