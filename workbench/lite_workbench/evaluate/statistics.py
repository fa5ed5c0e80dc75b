"""Confidence intervals by the bootstrap, and whether two sides differ.

A metric is computed again on samples drawn with replacement, as often as DRAWS says (percentile
bootstrap: Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 13). All sides
see the same draws, so the difference of two is a paired bootstrap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

CONFIDENCE = 0.95
DRAWS = 1000
#: Elements of one block of counts.
_BLOCK = 1 << 22

#: (draws, samples) how often each sample was drawn → (draws,) values of a metric
Resampled = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Measure:
    """A metric over all samples: `value` on them, and `resampled` on draws from them.

    `each` is (samples,) where the metric is a mean over samples; `hits` tells whether that is the
    share of samples that are right by it, all 0 or 1.
    """

    name: str
    value: float
    resampled: Resampled
    higher_is_better: bool = True
    each: np.ndarray | None = field(default=None, compare=False)
    hits: bool = False
    draws: int = DRAWS


def share(name: str, hits: Sequence[bool]) -> Measure:
    """The share of samples that are right."""
    column = np.asarray(hits, bool)
    return Measure(name, float(column.mean()), mean(column), each=column, hits=True)


def average(name: str, values: Sequence[float]) -> Measure:
    """The mean of a number of each sample."""
    column = np.asarray(values, np.float64)
    return Measure(name, float(column.mean()), mean(column), each=column)


def ratio(parts: np.ndarray, of: Callable[[np.ndarray], Any]) -> Resampled:
    """A metric that follows from sums over samples: `parts` (samples, k) are added up, and `of`
    makes the metric of sums (…, k)."""
    return lambda counts: np.asarray(of(counts @ parts), np.float64)


def mean(values: Any) -> Resampled:
    """The mean of a value of each sample."""
    column = np.asarray(values, np.float64)
    return lambda counts: counts @ column / counts.sum(axis=1)


def draws(measure: Measure, samples: int) -> np.ndarray:
    """(draws,) values of a metric on resampled data; seeded, the same draws for each metric."""
    blocks = [measure.resampled(c) for c in _counts(samples, measure.draws)]
    return np.concatenate(blocks)


def _counts(samples: int, number: int) -> Iterator[np.ndarray]:
    rng = np.random.default_rng(0)
    at_once = max(_BLOCK // max(samples, 1), 1)
    for start in range(0, number, at_once):
        rows = min(at_once, number - start)
        yield rng.multinomial(samples, np.full(samples, 1 / samples), size=rows)


def interval(measure: Measure, values: np.ndarray, samples: int) -> tuple[float, float]:
    """The CONFIDENCE interval of a metric. Where every draw gives 0 or 1 (all right or all wrong)
    the bootstrap would claim certainty: then it is Wilson's. Draws of a single sample that say
    anything else tell nothing: then there is none, (NaN, NaN)."""
    # nearly, since a COCO precision is TP / (TP + ε); draws without a true object are NaN
    drawn = values[np.isfinite(values)]
    if np.isclose(measure.value, (0, 1)).any() and np.isclose(drawn, measure.value).all():
        from scipy.stats import binomtest

        found = binomtest(round(measure.value * samples), samples).proportion_ci(
            CONFIDENCE, method="wilson"
        )
        return float(found.low), float(found.high)
    return quantiles(values) if samples > 1 else (float("nan"), float("nan"))


def quantiles(values: np.ndarray) -> tuple[float, float]:
    """The middle CONFIDENCE of the draws."""
    tail = (1 - CONFIDENCE) / 2
    finite = values[np.isfinite(values)]
    if not finite.size:
        return float("nan"), float("nan")
    low, high = np.quantile(finite, [tail, 1 - tail])
    return float(low), float(high)


def mcnemar(a: np.ndarray, b: np.ndarray) -> float:
    """The p-value that two sides are right equally often: McNemar's exact test on the samples that
    one has right and the other wrong. (N,) booleans."""
    from scipy.stats import binomtest

    gained, lost = int(np.sum(~a & b)), int(np.sum(a & ~b))
    return float(binomtest(lost, gained + lost).pvalue) if gained + lost else 1.0


def bootstrap_p(differences: np.ndarray) -> float:
    """The two-sided p-value of no difference, from the draws of a paired bootstrap."""
    finite = differences[np.isfinite(differences)]
    if not finite.size:
        return 1.0
    tail = min(np.mean(finite <= 0), np.mean(finite >= 0))
    return float(min(1.0, 2 * max(float(tail), 1 / (finite.size + 1))))
