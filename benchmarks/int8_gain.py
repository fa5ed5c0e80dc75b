"""What int8 gains over our own float32, one thread, with the instruction sets up to a given one.

    python -m benchmarks.int8_gain [--nets mobilenet_v1,resnet50] [--isa avx512vnni] [--files DIR]

The programs live in one process and take turns; a ratio is that of their least processor times.
int8 is measured twice: as `lite quantize` makes it, with seeded samples, and from the QDQ file of
onnxruntime's quantiser that `benchmarks --precision int8` gives to all engines. Ours adds a
residual to unrounded sums; that file asks for their rounding to bytes first.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from lite_engine import Predictor, optimize, settings
from lite_engine.backends.cpu.native import NativeProgram
from lite_engine.plan.program import WeightTable, encode
from lite_engine.runtime import host_target
from lite_workbench.quantizing import calibrated

from benchmarks.models import Files

TURN_SECONDS = 0.5
SAMPLES = 8


def program(model: Path, isa: str | None) -> NativeProgram:
    plan = Predictor(model, host_target(), threads=1).plan()
    if any(step.backend != "cpu" for step in plan.steps):
        raise SystemExit(f"{model.name}: a step has no native kernel")
    table = WeightTable()
    data = encode(plan, table)
    return NativeProgram(data, table.blobs, threads=1, max_isa=isa)


def quantised(source: Path, inputs: dict[str, np.ndarray]) -> Path:
    """What `lite quantize` makes of it; samples are standard normal, like the inputs."""
    rng = np.random.default_rng(1)
    samples = [
        {name: rng.standard_normal(x.shape).astype(x.dtype) for name, x in inputs.items()}
        for _ in range(SAMPLES)
    ]
    out = source.with_name(f"{source.stem}-own-int8.lite")
    calibrated(optimize(source, targets=[host_target()]), samples).save(out)
    return out


def least_ms(programs: list[NativeProgram], inputs: list[np.ndarray], turns: int) -> list[float]:
    best = [float("inf")] * len(programs)
    for _ in range(turns):
        for i, one in enumerate(programs):
            end = time.perf_counter() + TURN_SECONDS
            while time.perf_counter() < end:
                begin = time.process_time()
                one.run(inputs)
                best[i] = min(best[i], 1e3 * (time.process_time() - begin))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--nets", default="mobilenet_v1,resnet50")
    parser.add_argument("--isa", help="the highest instruction set, like avx512vnni")
    parser.add_argument("--files", type=Path, default=Path(settings.cache_dir()) / "benchmarks")
    parser.add_argument("--turns", type=int, default=20)
    args = parser.parse_args()
    files = Files(args.files)
    for net in args.nets.split(","):
        source, feeds = files.network(net)
        with np.load(feeds) as arrays:
            inputs = {name: arrays[name] for name in arrays.files}
        models = [files.model("lite", source, feeds, p) for p in ("fp32", "int8")]
        models.append(quantised(source, inputs))
        programs = [program(m, args.isa) for m in models]
        fp32, qdq, own = least_ms(programs, list(inputs.values()), args.turns)
        print(
            f"{net}: fp32 {fp32:.2f} ms; "
            f"int8 by lite quantize {own:.2f} ms, {fp32 / own:.2f} times; "
            f"int8 of the QDQ file {qdq:.2f} ms, {fp32 / qdq:.2f} times"
        )


if __name__ == "__main__":
    main()
