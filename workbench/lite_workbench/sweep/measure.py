"""One cell while it is measured: its predictors, and bursts of runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from lite_engine.model_file.precision import check_int8
from lite_engine.profile.measured import median_interval
from lite_engine.runtime import Predictor
from lite_engine.runtime.inputs import random_feeds
from lite_messages import tr

from .batch import check_rows, with_batch
from .cells import Cell, Choice

if TYPE_CHECKING:
    from lite_engine.model_file import Model

#: A burst takes about as long, at most this many runs.
BURST_S, MOST_RUNS = 0.05, 50


class Bench:
    """Raises LiteError when the cell cannot run."""

    def __init__(self, cell: Cell, model: Model) -> None:
        self.cell, choice = cell, cell.choice
        one = predictor_of(model, choice)
        shapes = {v.name: _sized(v.shape or (), choice.batch) for v in model.graph.inputs}
        self.feeds = random_feeds(model.graph, shapes=shapes)
        many = one if choice.batch == 1 else predictor_of(with_batch(model, choice.batch), choice)
        if many is not one:
            check_rows(one, many, self.feeds)
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
            many.backend, many.display_precision, choice.threads, choice.batch, choice.streams
        )
        plan = many.plan({n: x.shape for n, x in self.feeds.items()})
        weights = sum(v.const.nbytes for v in many.graph.constants() if v.const is not None)
        cell.memory_bytes = weights + choice.streams * plan.arena_bytes

    def burst(self) -> None:
        """Some runs on every stream at once."""
        took: list[list[float]] = [[] for _ in self.predictors]
        began = time.perf_counter()
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
        own_times = [t for one in took for t in one]
        self.times += own_times
        self.rates.append(len(own_times) * self.cell.choice.batch / elapsed)
        self.cell.runs = len(self.times)
        self.cell.latency_ms = float(np.median(self.times))
        self.cell.ci_ms = median_interval(np.array(self.times))
        self.cell.throughput = float(np.median(self.rates))


def _repeat(
    predictor: Predictor, feeds: Mapping[str, np.ndarray], runs: int, took: list[float]
) -> None:
    for _ in range(runs):
        began = time.perf_counter()
        predictor.run(feeds)
        took.append((time.perf_counter() - began) * 1e3)


def predictor_of(model: Model, choice: Choice) -> Predictor:
    """Raises LiteError for int8 that the model does not have."""
    if choice.precision == "int8":
        check_int8(model.graph_in("int8"), {tr("this model"): "int8"})
    asked = None if choice.precision == "auto" else choice.precision
    return Predictor(model, choice.backend, threads=choice.threads, precision=asked)


def _sized(shape: tuple[object, ...], batch: int) -> tuple[int, ...]:
    """The shape of an input for a batch. Other open sizes stay, which `random_feeds` tells."""
    return (batch, *shape[1:])  # type: ignore[arg-type]
