"""Conversion: what `lite info`, `convert` and `report` take for a graph of very many nodes, and
`convert` for very many bytes of weights.

    python -m benchmarks.conversion [--nodes 10200] [--megabytes 500] [--runs 2] [--json FILE]

The graph repeats what exporters write: residual blocks of convolution and batch normalisation, a
squeeze and excite, and a transformer's encoder block with its Reshape and Transpose forest, all on
few channels, so that the nodes cost and not the numbers. The weights belong to a multilayer
perceptron. Each figure is the least over the runs, of a process of its own: processor seconds (user
and system, all threads), peak resident memory, bytes written. A run finds the bytecode that runs
before it left, as an installed package has it.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import onnx
from lite_engine.profile.environment import environment

from benchmarks.zoo._net import Net
from benchmarks.zoo.transformer import encoder_block

_CHANNELS, _SIDE, _HEADS, _WIDTH = 8, 6, 2, 2048


@dataclass(frozen=True)
class Cost:
    """Of one process; `written` is the size of the file that it made, in bytes."""

    model: str
    verb: str
    cpu_s: float
    peak_mib: float
    written: int


def many_nodes(count: int) -> onnx.ModelProto:
    """At least `count` nodes, in whole rounds of blocks."""
    net = Net("many_nodes")
    x = net.input("image", (1, _CHANNELS, _SIDE, _SIDE))
    while len(net.nodes) < count:
        y = net.cbr(net.cbr(x, _CHANNELS, 3), _CHANNELS, 3, act="")
        y = net.squeeze_excite(net.act(net.add(x, y), "relu"), _CHANNELS // 2)
        tokens = net.transpose(net.reshape(y, 1, _CHANNELS, _SIDE * _SIDE), 0, 2, 1)
        tokens = net.transpose(encoder_block(net, tokens, _HEADS), 0, 2, 1)
        x = net.batch_norm(net.reshape(tokens, 1, _CHANNELS, _SIDE, _SIDE))
    net.output(x, "out")
    return net.build()


def many_bytes(megabytes: int) -> onnx.ModelProto:
    """Fully connected layers of 2,048 with that many 10^6 bytes of float32 weights."""
    net = Net("many_bytes")
    x = net.input("x", (1, _WIDTH))
    for _ in range(max(1, megabytes * 10**6 // (4 * _WIDTH**2))):
        weights = net.rng.standard_normal((_WIDTH, _WIDTH), np.float32) / np.sqrt(_WIDTH / 2)
        product = net.op("MatMul", x, net.const(weights.astype(np.float32), "weight"))[0]
        x = net.act(replace(x, name=product), "relu")
    net.output(x, "out")
    return net.build()


def _build(nodes: Path, count: int, large: Path, megabytes: int) -> None:
    onnx.save(many_nodes(count), nodes)
    onnx.save(many_bytes(megabytes), large)


def cost_of(model: Path, verb: str, runs: int, folder: Path) -> Cost:
    """Raises RuntimeError with the verb's message when it fails."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    kept["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
    options = {"info": [], "convert": ["-o", "x.lite"], "report": ["-o", "x.html"]}[verb]
    costs = []
    for _ in range(runs):
        command = [sys.executable, "-m", "lite_workbench", verb, str(model), *options]
        process = subprocess.Popen(
            command, cwd=folder, env=kept, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        assert process.stderr is not None
        message = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            raise RuntimeError(f"lite {verb} {model.name}: {message.strip()}")
        made = [folder / name for name in options[1:]]
        costs.append(Cost(
            model.stem, verb, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024,
            sum(path.stat().st_size for path in made),
        ))  # fmt: skip
    return min(costs, key=lambda cost: cost.cpu_s)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.conversion", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--nodes", type=int, default=10_200)
    parser.add_argument("--megabytes", type=int, default=500)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--json", type=Path, help="file for every figure")
    args = parser.parse_args()
    costs = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        nodes, large = folder / "many_nodes.onnx", folder / "many_bytes.onnx"
        # In a process of its own: what a process holds when it forks counts as its child's peak.
        build = multiprocessing.get_context("spawn").Process(
            target=_build, args=(nodes, args.nodes, large, args.megabytes)
        )
        build.start()
        build.join()
        print("model        verb       CPU s  peak MiB  file MB  written MB")
        for model, verb in (
            (nodes, "info"), (nodes, "convert"), (nodes, "report"), (large, "convert"),
        ):  # fmt: skip
            cost = cost_of(model, verb, args.runs, folder)
            costs.append(cost)
            print(
                f"{cost.model:12} {cost.verb:8} {cost.cpu_s:7.2f} {cost.peak_mib:9.0f}"
                f" {model.stat().st_size / 1e6:8.1f} {cost.written / 1e6:11.1f}", flush=True,
            )  # fmt: skip
    if args.json:
        found = {"environment": environment(), "costs": [asdict(cost) for cost in costs]}
        args.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
