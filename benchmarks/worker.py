"""One engine in a process of its own: commands as JSON lines on standard input.

    {"model": "m.mnn", "feeds": "m.npz", "threads": 1, "precision": "fp32", "outputs": "o.npz"}
                      →  {"import_s": …, "load_s": …, "first_s": …, "peak_mib": …}
    {"model": …, "layers": 20}  →  {"layers": [ … ]}   # of a peer that has `layers`
    {"burst_ms": 50}  →  {"ms": [ … ], "cpu_ms": [ … ]}

`ms` is wall time of each run, `cpu_ms` what all threads of the process spent in it: with one thread
the steadier of the two where other programs take the cores.

An error is {"error": "…"}. Only numpy and the engine itself are imported.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers import peer

Run = Callable[[], list[np.ndarray]]
AT_LEAST = 3  # runs of a burst


def load(engine: str, command: dict[str, Any]) -> tuple[Run, dict[str, Any]]:
    """Opens the model and runs it once."""
    feeds = read_feeds(command)
    start = time.perf_counter()
    run: Run = peer(engine).open(
        Path(command["model"]), feeds, command["threads"], command["precision"]
    )
    loaded = time.perf_counter()
    outputs = run()
    first = time.perf_counter()
    reply = {
        "load_s": loaded - start,
        "first_s": first - loaded,
        "peak_mib": peak_mib(),
    }
    if command.get("outputs"):
        np.savez(command["outputs"], *outputs)
    return run, reply


def layers(engine: str, command: dict[str, Any]) -> list[dict[str, Any]]:
    """The engine's own profile of a model."""
    found: list[dict[str, Any]] = peer(engine).layers(
        Path(command["model"]), read_feeds(command), command["threads"], command["precision"],
        command["layers"],
    )  # fmt: skip
    return found


def read_feeds(command: dict[str, Any]) -> dict[str, np.ndarray]:
    with np.load(command["feeds"]) as file:
        return {name: file[name] for name in file.files}


def peak_mib() -> float:
    """VmHWM: ru_maxrss would start at what the bench itself held when it started this process."""
    status = Path("/proc/self/status").read_text().splitlines()
    line = next(x for x in status if x.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


def burst(run: Run, milliseconds: float) -> dict[str, list[float]]:
    wall: list[float] = []
    cpu: list[float] = []
    while len(wall) < AT_LEAST or sum(wall) < milliseconds:
        start, spent = time.perf_counter(), time.process_time()
        run()
        cpu.append((time.process_time() - spent) * 1e3)
        wall.append((time.perf_counter() - start) * 1e3)
    return {"ms": wall, "cpu_ms": cpu}


def serve(engine: str) -> None:
    """Answers commands until standard input ends."""
    # Libraries print what they like on descriptor 1: only replies may reach the pipe.
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    run: Run | None = None
    for line in sys.stdin:
        command = json.loads(line)
        reply: dict[str, Any]
        try:
            if "layers" in command:
                reply = {"layers": layers(engine, command)}
            elif "model" in command:
                run, reply = load(engine, command)
            elif run is None:
                reply = {"error": "no model is loaded"}
            else:
                reply = dict(burst(run, command["burst_ms"]))
        except Exception as error:  # noqa: BLE001  the table shows what an engine cannot do
            reply = {"error": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps(reply), file=replies, flush=True)


if __name__ == "__main__":
    serve(sys.argv[1])
