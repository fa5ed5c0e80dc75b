"""One cell while it is measured: its predictors, and bursts of runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from lite_engine.devices import find_device
from lite_engine.edit import batched
from lite_engine.errors import UsageError
from lite_engine.model_file.precision import check_int8
from lite_engine.profile.measured import median_interval
from lite_engine.runtime import Predictor
from lite_engine.runtime.inputs import random_feeds
from lite_messages import tr

from ..batches import batch_of, check_rows, with_batch
from .cells import Cell, Choice
from .energy import Meter

if TYPE_CHECKING:
    from lite_engine.model_file import Model

#: A burst takes about as long, at most this many runs.
BURST_S, MOST_RUNS = 0.05, 50


class Bench:
    """Raises LiteError when the cell cannot run."""

    def __init__(self, cell: Cell, model: Model) -> None:
        self.cell, choice = cell, cell.choice
        self.meter = Meter()
        self.energy: list[float] = []
        one = predictor_of(model, choice)
        _check_device(one, choice)
        own = batch_of(model.graph)
        many = one if choice.batch == own else predictor_of(with_batch(model, choice.batch), choice)
        self.feeds = _random_feeds(many.model, choice.batch)
        if choice.batch > own:
            check_rows(one, many, self.feeds)
        elif choice.batch < own:
            check_rows(many, one, _random_feeds(one.model, own))
        self.predictors = [many, *(many.like(many.graph) for _ in range(choice.streams - 1))]
        for predictor in self.predictors:
            predictor.run(self.feeds)  # the first run plans and packs
        began = time.perf_counter()
        many.run(self.feeds)
        once = time.perf_counter() - began
        self.runs = int(np.clip(BURST_S / max(once, 1e-6), 1, MOST_RUNS))
        self.times: list[float] = []
        self.rates: list[float] = []
        cell.choice = type(choice)(
            many.backend, many.display_precision, choice.threads, choice.batch, choice.streams,
            choice.device,
        )  # fmt: skip
        used = many.execution({n: x.shape for n, x in self.feeds.items()}).memory()
        values = used.get("arena", 0) + used.get("device", 0)
        cell.memory_bytes = used["weights"] + choice.streams * values

    def burst(self) -> None:
        """Some runs on every stream at once."""
        took: list[list[float]] = [[] for _ in self.predictors]
        before, began = self.meter.now(), time.perf_counter()
        if len(self.predictors) == 1:
            _repeat(self.predictors[0], self.feeds, self.runs, took[0])
        else:
            threads = [
                threading.Thread(target=_repeat, args=(p, self.feeds, self.runs, own))
                for p, own in zip(self.predictors, took, strict=True)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        elapsed = time.perf_counter() - began
        spent = self.meter.spent_mj(before, self.meter.now())
        own_times = [t for one in took for t in one]
        if self.predictors[0].device is not None:
            elapsed, spent = sum(own_times) / 1e3, None  # the device's own clock, not this machine
        elif spent is not None:
            self.energy.append(spent / (len(own_times) * self.cell.choice.batch))
            self.cell.energy_mj = float(np.median(self.energy))
        self.times += own_times
        self.rates.append(len(own_times) * self.cell.choice.batch / elapsed)
        self.cell.runs = len(self.times)
        self.cell.latency_ms = float(np.median(self.times))
        self.cell.ci_ms = median_interval(np.array(self.times))
        self.cell.throughput = float(np.median(self.rates))


def _repeat(
    predictor: Predictor, feeds: Mapping[str, np.ndarray], runs: int, took: list[float]
) -> None:
    if predictor.device is not None:
        execution = predictor.execution({n: x.shape for n, x in feeds.items()})
        ordered = [feeds[n] for n in predictor.input_names]
        took += (execution.measure(ordered, runs=runs, warmup=1).total_ns / 1e6).tolist()
        return
    for _ in range(runs):
        began = time.perf_counter()
        predictor.run(feeds)
        took.append((time.perf_counter() - began) * 1e3)


def predictor_of(model: Model, choice: Choice, *, reached: bool = True) -> Predictor:
    """`reached` is False where only a worker elsewhere reaches the device. Raises LiteError for
    int8 that the model does not have."""
    if choice.precision == "int8":
        check_int8(model.graph_in("int8"), {tr("this model"): "int8"})
    asked = None if choice.precision == "auto" else choice.precision
    return Predictor(
        model, choice.backend, threads=choice.threads, precision=asked,
        device=find_device(choice.device) if reached else None,
    )  # fmt: skip


def not_timed(device: str) -> UsageError:
    """Why an emulated device is not measured."""
    return UsageError(
        tr("times under emulation are not meaningful"),
        fix=tr("count instructions instead"),
        command=f"lite profile MODEL --device {device}",
    )


def _check_device(predictor: Predictor, choice: Choice) -> None:
    """Raises UsageError for a device that cannot be measured in this way."""
    if predictor.emulated:
        raise not_timed(choice.device)
    if predictor.device is not None and choice.streams > 1:
        raise UsageError(tr("a device runs one stream at a time"), fix=tr("pass --streams 1"))


def _random_feeds(model: Model, batch: int) -> dict[str, np.ndarray]:
    """Random numbers, for `batch` samples where that is open. Other open sizes stay, which
    `random_feeds` tells."""
    opened = {
        v.name: (batch, *v.shape[1:]) for v in batched(model.graph)
        if v.shape and not isinstance(v.shape[0], int)
    }  # fmt: skip
    return random_feeds(model, shapes=opened)  # type: ignore[arg-type]
