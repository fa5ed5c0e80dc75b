"""The parts of an Evaluation: plain data, and how each is said in words."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from lite_messages import tr, trn

from .tasks._base import ClassResult


@dataclass
class Metric:
    """A metric and its 95 % confidence interval; shares and most other metrics are 0…1."""

    name: str
    value: float
    low: float
    high: float
    higher_is_better: bool

    def __str__(self) -> str:
        """top-1 87.2 % (84.0 … 90.1)"""
        return f"{self.name} {self.figure}"

    @property
    def short(self) -> str:
        """top-1 87.2 %"""
        return f"{self.name} {shown(self.name, self.value)}"

    @property
    def figure(self) -> str:
        """87.2 % (84.0 … 90.1), without the interval where there is none"""
        if not (np.isfinite(self.low) and np.isfinite(self.high)):
            return shown(self.name, self.value)
        low, high = readable(self.name, self.low), readable(self.name, self.high)
        return f"{shown(self.name, self.value)} ({low} … {high})"


@dataclass
class SideResult:
    """One version on one backend. `confusion` is (label, prediction, count), largest first."""

    name: str
    version: str
    backend: str
    precision: str
    metrics: list[Metric]
    classes: list[ClassResult] = field(default_factory=list)
    confusion: list[tuple[str, str, int]] = field(default_factory=list)

    @property
    def main(self) -> Metric:
        return self.metrics[0]


@dataclass
class Change:
    """The main metric of `candidate` minus that of `baseline`, with its interval. `changed` samples
    have another prediction; `improved` and `worsened` count what became right or wrong by the
    metric, or a better or worse answer where it knows no right and wrong."""

    baseline: str
    candidate: str
    metric: str
    difference: float
    low: float
    high: float
    p_value: float
    test: str
    significant: bool
    higher_is_better: bool
    changed: int
    improved: int
    worsened: int
    samples: int

    @property
    def sentence(self) -> str:
        """int8 loses 0.4 ± 0.9 points of top-1 against float on 500 samples: …"""
        if self.changed == 0 and self.difference == 0:
            return trn(
                "{candidate} and {baseline} agree on {n} sample",
                "{candidate} and {baseline} agree on {n} samples",
                self.samples, candidate=self.candidate, baseline=self.baseline,
            )  # fmt: skip
        return f"{self._said}: {self._verdict}; {self._counts}"

    @property
    def _said(self) -> str:
        """One text for each direction: languages order these words differently."""
        candidate, baseline, metric = self.candidate, self.baseline, self.metric
        samples = self.samples
        margin = with_unit(metric, (self.high - self.low) / 2)
        if self.difference == 0:
            return trn(
                "{candidate} has the same {metric} as {baseline} (± {margin}) on {n} sample",
                "{candidate} has the same {metric} as {baseline} (± {margin}) on {n} samples",
                samples, candidate=candidate, baseline=baseline, metric=metric, margin=margin,
            )  # fmt: skip
        size = readable(metric, abs(self.difference))
        if not self.higher_is_better and self.worse:
            return trn(
                "{candidate} has {size} ± {margin} more {metric} than {baseline} on {n} sample",
                "{candidate} has {size} ± {margin} more {metric} than {baseline} on {n} samples",
                samples, candidate=candidate, baseline=baseline, metric=metric, size=size,
                margin=margin,
            )  # fmt: skip
        if not self.higher_is_better:
            return trn(
                "{candidate} has {size} ± {margin} less {metric} than {baseline} on {n} sample",
                "{candidate} has {size} ± {margin} less {metric} than {baseline} on {n} samples",
                samples, candidate=candidate, baseline=baseline, metric=metric, size=size,
                margin=margin,
            )  # fmt: skip
        if self.worse:
            return trn(
                "{candidate} loses {size} ± {margin} of {metric} against {baseline} on {n} sample",
                "{candidate} loses {size} ± {margin} of {metric} against {baseline} on {n} samples",
                samples, candidate=candidate, baseline=baseline, metric=metric, size=size,
                margin=margin,
            )  # fmt: skip
        return trn(
            "{candidate} gains {size} ± {margin} of {metric} against {baseline} on {n} sample",
            "{candidate} gains {size} ± {margin} of {metric} against {baseline} on {n} samples",
            samples, candidate=candidate, baseline=baseline, metric=metric, size=size,
            margin=margin,
        )  # fmt: skip

    @property
    def worse(self) -> bool:
        """Is the candidate's metric worse, by however little?"""
        return self.difference != 0 and (self.difference < 0) == self.higher_is_better

    @property
    def _verdict(self) -> str:
        if self.significant:
            return tr("a real difference ({test} p = {p:.2g})", test=self.test, p=self.p_value)
        if self.difference == 0:
            return tr("no difference ({test} p = {p:.2g})", test=self.test, p=self.p_value)
        return tr("possibly chance ({test} p = {p:.2g})", test=self.test,
                  p=self.p_value)  # fmt: skip

    @property
    def _counts(self) -> str:
        return trn(
            "{n} prediction changed, {improved} better, {worsened} worse",
            "{n} predictions changed, {improved} better, {worsened} worse",
            self.changed, improved=self.improved, worsened=self.worsened,
        )  # fmt: skip


@dataclass
class SampleResult:
    """What one side predicted for a sample."""

    prediction: str
    score: float | None
    value: float
    right: bool | None

    @property
    def figure(self) -> str:
        """✓ cat (0.871)"""
        mark = "" if self.right is None else "✓ " if self.right else "✗ "
        return mark + self.prediction + (f" ({self.score:.3f})" if self.score is not None else "")


@dataclass
class SampleRow:
    """One sample on all sides."""

    name: str
    label: str
    sides: dict[str, SampleResult]

    @property
    def disagrees(self) -> bool:
        return len({side.prediction for side in self.sides.values()}) > 1

    @property
    def change(self) -> str:
        """What became of the first side's answer on the last one."""
        first, *_, last = self.sides.values()
        if last.value != first.value:
            return tr("worse") if last.value < first.value else tr("better")
        return tr("changed") if self.disagrees else ""

    @property
    def order(self) -> tuple[float, ...]:
        """Most interesting first: sides that differ in how good they are, in what they predict, in
        their scores; then what is wrong with a high score."""
        values = [side.value for side in self.sides.values()]
        scores = [side.score or 0.0 for side in self.sides.values()]
        return (
            min(values) - max(values), -float(self.disagrees),
            min(values), min(scores) - max(scores), -max(scores),
        )  # fmt: skip


def unit_of(name: str) -> str:
    """The unit in which a metric is shown."""
    return {"PSNR": "dB", "SSIM": ""}.get(name, "%")


def shown(name: str, value: float) -> str:
    """A value of a metric: 87.2 %, 37.22 dB, 0.9310."""
    return f"{readable(name, value)} {unit_of(name)}".rstrip()


def with_unit(metric: str, value: float) -> str:
    """The difference of two values of a metric: 0.9 points, 0.31 dB."""
    return _difference(metric, readable(metric, value))


def limit_of(metric: str, value: float) -> str:
    """What a metric may lose, as it was given: 0.05 points, 0.5 dB."""
    return _difference(metric, f"{value * (100 if unit_of(metric) == '%' else 1):g}")


def _difference(metric: str, figure: str) -> str:
    unit = unit_of(metric)
    return tr("{figure} points", figure=figure) if unit == "%" else f"{figure} {unit}".rstrip()


def readable(name: str, value: float) -> str:
    """The figure of a metric as it is shown, without its unit."""
    if not np.isfinite(value):
        return "–"
    return {"PSNR": f"{value:.2f}", "SSIM": f"{value:.4f}"}.get(name, f"{100 * value:.1f}")
