"""What a change costs: two ways of running a model, measured in turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from lite_engine.runtime import Predictor


@dataclass(frozen=True)
class Change:
    """Medians in ms of the whole model, and the half width of the 95 % interval of their
    difference. Reads "+0.23 ± 0.05 ms"."""

    before_ms: float
    after_ms: float
    interval_ms: float

    @property
    def delta_ms(self) -> float:
        return self.after_ms - self.before_ms

    def __str__(self) -> str:
        text = f"{self.delta_ms:+.2f}".replace("-", "−")
        return f"{text} ± {self.interval_ms:.2f} ms"


def measure_change(
    before: Predictor,
    after: Predictor,
    feeds: Mapping[str, np.ndarray],
    runs: int,
    progress: Callable[[int, int], None],
) -> Change:
    """Runs two Predictors in turns, so that the machine's mood hits both; the first turn, which
    plans and packs, is left out."""
    samples = np.zeros((runs + 1, 2))
    for turn in range(runs + 1):
        for side, predictor in enumerate((before, after)):
            began = time.perf_counter()
            predictor.run(feeds)
            samples[turn, side] = (time.perf_counter() - began) * 1e3
        progress(turn, runs)
    kept = samples[1:]
    deltas = kept[:, 1] - kept[:, 0]
    # The median's standard error is 1.25 of the mean's; the spread by the median deviation, since
    # a single interruption must not widen the interval.
    spread = 1.4826 * float(np.median(np.abs(deltas - np.median(deltas))))
    medians = np.median(kept, axis=0)
    interval = 1.96 * 1.2533 * spread / np.sqrt(runs)
    return Change(float(medians[0]), float(medians[1]), float(interval))
