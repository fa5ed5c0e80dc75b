"""Two builds of the engine in turns, on single layers or whole files: least time of each layer.

    python -m benchmarks.builds OTHER/lite_run gemm:128x768x3072 layer_norm:3136x96
    python -m benchmarks.builds OTHER/lite_run model.lite [--threads 2] [--rounds 8] [--layers]

OTHER/lite_run is the runner of another build (`engine/lite_engine/_native/bin/x86_64/lite_run` of
another checkout); it must read files of this version. Layers by their sizes:

    gemm:ROWSxDEPTHxCOLUMNS            conv:CHANNELSxSIDExOUTxKERNELxSTRIDE
    layer_norm:ROWSxWIDTH              depthwise:CHANNELSxSIDExKERNELxSTRIDE
    softmax:ROWSxWIDTH                 instance_norm:PIXELSxCHANNELS
    gelu:ROWSxWIDTH                    reduce_mean:ROWSxCOLUMNS (over the rows)
    resize:CHANNELSxSIDE (doubled, linear)
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import onnx
from lite_engine import optimize
from lite_engine._native import runner_path
from lite_engine.runtime import host_target
from onnx import TensorProto, helper, numpy_helper

OPSET = 20
#: What a call of a runner should take, in seconds.
BURST = 0.08


def layer(text: str) -> onnx.ModelProto:
    """A network of that one layer. Raises ValueError for what is not in the list above."""
    kind, _, sizes = text.partition(":")
    rng = np.random.default_rng(0)
    weights: dict[str, np.ndarray] = {}

    def w(*shape: int) -> str:
        weights[f"w{len(weights)}"] = rng.standard_normal(shape).astype(np.float32)
        return f"w{len(weights) - 1}"

    try:
        n = [int(size) for size in sizes.split("x")]
        match kind, n:
            case "gemm", [rows, depth, columns]:
                node, shape = ("MatMul", ["x", w(depth, columns)], {}), [rows, depth]
            case (("conv" | "depthwise"), [channels, side, *rest]):
                out, k, s = (channels, *rest) if kind == "depthwise" else rest
                group = channels if kind == "depthwise" else 1
                inputs = ["x", w(out, channels // group, k, k), w(out)]
                attrs = {"strides": [s, s], "pads": [k // 2] * 4, "group": group}
                node, shape = ("Conv", inputs, attrs), [1, channels, side, side]
            case "layer_norm", [rows, width]:
                node = ("LayerNormalization", ["x", w(width), w(width)], {})
                shape = [rows, width]
            case "instance_norm", [pixels, channels]:
                node = ("InstanceNormalization", ["x", w(channels), w(channels)], {})
                shape = [1, channels, pixels]
            case "reduce_mean", [rows, columns]:
                weights["axes"] = np.array([0])
                node, shape = ("ReduceMean", ["x", "axes"], {}), [rows, columns]
            case (("softmax" | "gelu"), [rows, width]):
                node, shape = (kind.capitalize(), ["x"], {}), [rows, width]
            case "resize", [channels, side]:
                weights["by"] = np.array([1, 1, 2, 2], np.float32)
                node, shape = (
                    ("Resize", ["x", "", "by"], {"mode": "linear"}),
                    [1, channels, side, side],
                )
            case _:
                raise ValueError
    except ValueError:
        raise ValueError(f"no layer {text!r}: see `python -m benchmarks.builds --help`") from None
    op, inputs, attrs = node
    graph = helper.make_graph(
        [helper.make_node(op, inputs, ["y"], name=kind, **attrs)],
        kind,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)


def layers_of(runner: Path, model: Path, threads: int, runs: int) -> list[dict]:
    """The steps of that many runs, as `lite_run --profile` writes them. Raises RuntimeError with
    the runner's message."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [runner, model, "--threads", threads, "--runs", runs, "--profile", file.name]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{runner}: {done.stderr.strip()}")
        return json.load(file)["steps"]


def compare(runners: list[Path], model: Path, threads: int, rounds: int) -> list[list[float]]:
    """Milliseconds of each layer by each runner: the least of all runs. Raises RuntimeError where
    the builds run different layers."""
    first = layers_of(runners[0], model, threads, 3)
    once = sum(step["min_ns"] for step in first) / 1e9
    runs = max(3, int(BURST / max(once, 1e-6)))
    least: list[list[float]] = []
    for _ in range(rounds):
        both = [layers_of(runner, model, threads, runs) for runner in runners]
        if [s["name"] for s in both[0]] != [s["name"] for s in both[1]]:
            raise RuntimeError(f"{model.name}: the two builds run different layers")
        now = [[step["min_ns"] / 1e6 for step in steps] for steps in zip(*both, strict=True)]
        least = [list(map(min, a, b)) for a, b in zip(least, now, strict=True)] if least else now
    return least


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.builds", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("other", type=Path, help="the other build's runner")
    parser.add_argument("what", nargs="+", help="layers, or files that lite convert wrote")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--layers", action="store_true", help="each layer of a file")
    args = parser.parse_args()
    runners = [args.other, runner_path()]
    print(f"{'ms, least':40} {'other':>9} {'this':>9}  ratio")
    with tempfile.TemporaryDirectory() as folder:
        for what in args.what:
            model = Path(what)
            if model.suffix != ".lite":
                onnx.save(layer(what), Path(folder) / "layer.onnx")
                model = Path(folder) / "layer.lite"
                optimize(Path(folder) / "layer.onnx", targets=[host_target()]).save(model)
            rows = compare(runners, model, args.threads, args.rounds)
            if args.layers:
                names = [s["name"] for s in layers_of(runners[1], model, args.threads, 1)]
                for name, (other, this) in zip(names, rows, strict=True):
                    print(f"  {name[-38:]:38} {other:9.4f} {this:9.4f}  {this / other:.2f}")
            other, this = map(sum, zip(*rows, strict=True))
            print(f"{Path(what).name:40} {other:9.4f} {this:9.4f}  {this / other:.2f}", flush=True)


if __name__ == "__main__":
    main()
