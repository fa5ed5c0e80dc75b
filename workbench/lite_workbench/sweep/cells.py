"""The choices of a sweep and what was measured of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

from lite_engine.errors import UsageError
from lite_messages import tr, trn

from ..evaluate.results import shown


@dataclass(frozen=True)
class Choice:
    """One way to run a model. `streams` predictors run at once, each with `threads` threads."""

    backend: str
    precision: str
    threads: int
    batch: int = 1
    streams: int = 1
    device: str = "local"

    def __str__(self) -> str:
        threads = trn("{n} thread", "{n} threads", self.threads)
        parts = [self.backend, self.precision, threads, tr("batch {n}", n=self.batch)]
        streams = [tr("{n} streams", n=self.streams)] if self.streams > 1 else []
        device = [self.device] if self.device != "local" else []
        return " · ".join([*parts, *streams, *device])


@dataclass
class Cell:
    """`latency_ms` is the median time of one run of a whole batch, `ci_ms` half its 95 % interval,
    `throughput` samples per second of all streams together. `status` is "measured"; "stopped" (it
    was hopeless, `why` says beside which one) or "failed". `memory_bytes` are the weights and,
    of each stream, the values between layers, `energy_mj` the energy of the CPU packages for a
    sample where it can be read. `machine` is the worker's, on a cluster. The metric is that of the
    labeled data, if any."""

    choice: Choice
    status: str = "waiting"
    why: str = ""
    runs: int = 0
    latency_ms: float | None = None
    ci_ms: float | None = None
    throughput: float | None = None
    memory_bytes: int | None = None
    energy_mj: float | None = None
    machine: str = ""
    metric: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    higher_is_better: bool = True
    front: bool = False

    @property
    def accuracy(self) -> str:
        """top-1 98.2 %, PSNR 37.22 dB, or nothing without labeled data."""
        return "" if self.value is None else f"{self.metric} {shown(self.metric, self.value)}"


def counts_of(text: str) -> list[int]:
    """1, 2, 4 → the numbers, each once. Raises UsageError."""
    words = [w.strip() for w in text.split(",") if w.strip()]
    if not words or not all(w.isdecimal() and 0 < int(w) < 1 << 31 for w in words):
        raise UsageError(tr("expected numbers of 1 or more, like 1,2,4, found {text!r}", text=text))
    return list(dict.fromkeys(map(int, words)))


def choices(
    backends: Sequence[str],
    precisions: Sequence[str],
    threads: Sequence[int],
    batches: Sequence[int],
    streams: Sequence[int],
    devices: Sequence[str] = ("local",),
) -> list[Choice]:
    """Every combination; threads mean nothing on OpenCL, so that it has the first number only."""
    made = [
        Choice(b, p, t, n, s, d)
        for d, b, p, t, n, s in product(devices, backends, precisions, threads, batches, streams)
    ]
    return [c for c in made if c.backend != "opencl" or c.threads == threads[0]]


def mark_front(cells: Iterable[Cell]) -> None:
    """Sets `front` of the measured cells that no other one beats: none has a latency, throughput,
    memory and metric that are all as good, and one of them better."""
    measured = [c for c in cells if c.status == "measured"]
    for cell in measured:
        cell.front = not any(_beats(other, cell) for other in measured)


def _beats(a: Cell, b: Cell) -> bool:
    better = [x >= y for x, y in zip(goals(a), goals(b), strict=True)]
    return all(better) and goals(a) != goals(b)


def goals(cell: Cell) -> tuple[float, ...]:
    """Latency, throughput, memory, energy and metric; of each, larger is better."""
    metric = 0.0 if cell.value is None else cell.value * (1 if cell.higher_is_better else -1)
    energy = -(cell.energy_mj or 0)
    return -(cell.latency_ms or 0), cell.throughput or 0, -(cell.memory_bytes or 0), energy, metric
