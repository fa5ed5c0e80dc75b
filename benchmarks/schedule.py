"""A fair schedule: all engines load and warm up, then run in short bursts in turn."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from benchmarks.environments import python_of
from benchmarks.models import Files
from benchmarks.peers import ENGINES

BURST_MS = 60.0
#: Pause before a burst: peers' idle threads spin for up to 20 ms after a run.
REST_S = 0.03
#: However short the time: the minimum of one or two runs of a slow network is mostly noise.
LEAST_ROUNDS = 5
#: A shared host has quick and slow phases, of tens of milliseconds to seconds, and not all engines
#: meet the quick ones in the same time. A least time is reached when as many bursts came this near
#: to it; the turns go on until every engine has reached its own, for at most PATIENCE times the
#: time asked for.
NEAR, BURSTS_NEAR, PATIENCE = 1.04, 3, 5
#: Greatest relative L2 distance to our output of a peer that computes the same network.
SAME = {"fp32": 1e-2, "fp16": 2e-2, "bf16": 0.2, "int8": 0.2}


class Engine(Protocol):
    """What runs one engine apart from this process."""

    def ask(self, **command: Any) -> dict[str, Any]: ...


class Worker:
    """One engine in its own process."""

    def __init__(self, command: list[str]) -> None:
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115  lives as long as the process
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True
        )

    def ask(self, **command: Any) -> dict[str, Any]:
        """The reply; an "error" key when the engine failed or died."""
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(command) + "\n")
            self.process.stdin.flush()
            return dict(json.loads(self.process.stdout.readline()))
        except (OSError, ValueError):
            self.errors.seek(0)
            lines = self.errors.read().decode(errors="replace").strip().splitlines()
            return {"error": f"died: {lines[-1][:200] if lines else 'no message'}"}

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.errors.close()


def measure(
    files: Files, network: str, engines: list[str], threads: int, precision: str, seconds: float
) -> dict[str, dict[str, Any]]:
    """Per engine: least and median ms (wall), whether the least was reached more than by chance,
    least CPU ms, load and first-run seconds, peak MiB, distance to our output; or "error"."""
    source, feeds = files.network(network)
    rows: dict[str, dict[str, Any]] = {e: {} for e in engines}
    workers: dict[str, Worker] = {}
    outputs: dict[str, list[np.ndarray]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for engine in engines:
            try:
                model = files.model(engine, source, feeds, precision)
            except RuntimeError as error:
                rows[engine]["error"] = str(error)
                continue
            worker = Worker([python_of(engine), "-m", "benchmarks.worker", engine])
            path = Path(folder) / f"{engine}.npz"
            rows[engine] = worker.ask(
                model=str(model), feeds=str(feeds), threads=threads, precision=precision,
                outputs=str(path),
            )  # fmt: skip
            if "error" in rows[engine]:
                worker.close()
                continue
            workers[engine] = worker
            with np.load(path) as file:
                outputs[engine] = [file[f"arr_{i}"] for i in range(len(file.files))]
    try:
        run_in_turn(workers, rows, seconds)
    finally:
        for worker in workers.values():
            worker.close()
    for engine in workers:
        if engine != "lite" and "lite" in outputs and "error" not in rows[engine]:
            distance = distance_of(outputs[engine], outputs["lite"])
            rows[engine]["distance"] = distance
            if distance is None or distance > SAME.get(precision, np.inf):
                rows[engine]["error"] = f"its output is not ours (distance {distance})"
    return rows


def run_in_turn(
    workers: Mapping[str, Engine], rows: dict[str, dict[str, Any]], seconds: float
) -> None:
    """Bursts until `seconds` per engine have passed, at least LEAST_ROUNDS of them, and on until
    every engine has reached its least time (see NEAR); the order turns by one each round. CPU times
    are those of engines that tell them."""
    wall: dict[str, list[float]] = {e: [] for e in workers}
    cpu: dict[str, list[float]] = {e: [] for e in workers}
    least: dict[str, list[float]] = {e: [] for e in workers}
    start = time.monotonic()
    order = list(workers)
    rounds = 0
    for engine in order:  # warm-up: whatever an engine tunes or allocates late
        workers[engine].ask(burst_ms=BURST_MS)
    while order:
        passed = (time.monotonic() - start) / len(workers)
        settled = all(reached(least[engine]) for engine in order)
        if rounds >= LEAST_ROUNDS and passed >= seconds * (1 if settled else PATIENCE):
            break
        rounds += 1
        for engine in tuple(order):
            time.sleep(REST_S)
            reply = workers[engine].ask(burst_ms=BURST_MS)
            if "error" in reply:
                rows[engine]["error"] = reply["error"]
                order.remove(engine)
                continue
            wall[engine] += reply["ms"]
            cpu[engine] += reply.get("cpu_ms", [])
            least[engine].append(min(reply["ms"]))
        order = order[1:] + order[:1]
    for engine in order:
        rows[engine] |= {
            "min_ms": min(wall[engine]),
            "median_ms": float(np.median(wall[engine])),
            "runs": len(wall[engine]),
            "reached": reached(least[engine]),
        }
        if cpu[engine]:
            rows[engine]["min_cpu_ms"] = min(cpu[engine])


def reached(least: list[float]) -> bool:
    """Whether enough of the bursts, each with its least time here, came near to the least."""
    return sum(time <= NEAR * min(least) for time in least) >= BURSTS_NEAR


def distance_of(found: list[np.ndarray], expected: list[np.ndarray]) -> float | None:
    """Largest relative L2 distance over the outputs; None where shapes cannot be brought together.

    A peer may hand outputs channels-last, without the batch, or in another order.
    """
    if len(found) != len(expected):
        return None
    worst = 0.0
    left = list(found)
    for want in expected:
        fitting = [
            (float(np.linalg.norm(form - want) / (np.linalg.norm(want) or 1)), i)
            for i, have in enumerate(left)
            for form in _forms(have, want.shape)
        ]
        if not fitting:
            return None
        nearest, index = min(fitting)
        worst = max(worst, nearest)
        left.pop(index)
    return worst


def _forms(have: np.ndarray, shape: tuple[int, ...]) -> list[np.ndarray]:
    have = have.astype(np.float32)
    if have.size != int(np.prod(shape)):
        return []
    forms = [have.reshape(shape)]
    if have.ndim == len(shape) and have.ndim > 2:
        last_to_second = np.moveaxis(have, -1, 1)
        if last_to_second.shape == tuple(shape):
            forms.append(last_to_second)
    return forms


def choose(text: str) -> list[str]:
    """Engines named in `text`, ours first. Raises ValueError for an unknown one."""
    names = text.split(",")
    unknown = [n for n in names if n not in ENGINES]
    if unknown:
        raise ValueError(f"no engine {unknown[0]!r}; there are: {', '.join(ENGINES)}")
    return [e for e in ENGINES if e in names]
