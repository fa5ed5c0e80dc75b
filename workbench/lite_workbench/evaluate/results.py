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
    def figure(self) -> str:
        """87.2 % (84.0 … 90.1)"""
        low, value, high = (readable(self.name, v) for v in (self.low, self.value, self.high))
        return f"{value}{_unit(self.name)} ({low} … {high})"


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
    have another prediction; `improved` and `worsened` count right and wrong."""

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
        name, on = self.metric, trn("on {n} sample", "on {n} samples", self.samples)
        if self.changed == 0 and self.difference == 0:
            return tr(
                "{candidate} and {baseline} agree {on}",
                candidate=self.candidate,
                baseline=self.baseline,
                on=on,
            )
        margin = readable(name, (self.high - self.low) / 2)
        unit = tr("points") if _unit(name) == " %" else _unit(name).strip()
        if self.difference == 0:
            said = tr(
                "{candidate} has the same {name} as {baseline} (± {margin} {unit})",
                candidate=self.candidate,
                name=name,
                baseline=self.baseline,
                margin=margin,
                unit=unit,
            )
        else:
            size = readable(name, abs(self.difference))
            loses = (self.difference < 0) == self.higher_is_better
            change = tr("loses") if loses else tr("gains")
            said = tr(
                "{candidate} {change} {size} ± {margin} {unit} of {name} against {baseline}",
                candidate=self.candidate,
                change=change,
                size=size,
                margin=margin,
                unit=unit,
                name=name,
                baseline=self.baseline,
            )
        verdict = tr("a real difference") if self.significant else tr("within what chance explains")
        return tr(
            "{said} {on}: {verdict} ({test} p = {p_value:.2g}); {changed} "
            "predictions changed, {improved} better, {worsened} worse",
            said=said,
            on=on,
            verdict=verdict,
            test=self.test,
            p_value=self.p_value,
            changed=self.changed,
            improved=self.improved,
            worsened=self.worsened,
        )


@dataclass
class SampleResult:
    """What one side predicted for a sample."""

    prediction: str
    score: float | None
    value: float
    right: bool | None


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
    def order(self) -> tuple[float, ...]:
        """Most interesting first: sides that differ in how good they are, in what they predict, in
        their scores; then what is wrong with a high score."""
        values = [side.value for side in self.sides.values()]
        scores = [side.score or 0.0 for side in self.sides.values()]
        return (
            min(values) - max(values), -float(self.disagrees),
            min(values), min(scores) - max(scores), -max(scores),
        )  # fmt: skip


def _unit(name: str) -> str:
    """The unit behind a figure."""
    return {"PSNR": " dB", "SSIM": ""}.get(name, " %")


def readable(name: str, value: float) -> str:
    """The figure of a metric as it is shown, without its unit."""
    if not np.isfinite(value):
        return "–"
    return {"PSNR": f"{value:.2f}", "SSIM": f"{value:.4f}"}.get(name, f"{100 * value:.1f}")
