"""What is done with each sample: it runs on every side, and the task judges the answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from lite_engine.adapter import Adapter
from lite_engine.errors import CalibrationError, LiteError, ShapeError, UsageError

from ..answers import Answer, answer_of
from ..inputs import read_source
from .tasks._base import UnreadableLabel

if TYPE_CHECKING:
    from .dataset import Sample
    from .side import Side
    from .tasks._base import Outcome, Task


@dataclass(frozen=True)
class Unreadable:
    """A sample that could not be read, and why."""

    name: str
    error: str


class Read(NamedTuple):
    """An answer, the image's (width, height), and whether no output holds NaN."""

    answer: Answer
    picture: tuple[int, int] | None
    finite: bool


class UnreadableSource(LiteError):
    """The input of a sample cannot be read; the sample is left out."""


@dataclass
class Judge:
    """What is done with each sample: plain data, so that a worker elsewhere can have it."""

    task: Task
    labels: list[str]
    options: Mapping[str, Any] = field(default_factory=dict)
    adapter: Adapter | None = None

    def outcomes(self, sides: Sequence[Side], sample: Sample) -> list[Outcome] | Unreadable:
        """One outcome for each side. Raises LiteError when a side cannot run."""
        found = []
        for side in sides:
            try:
                read = self.read(side, sample.source)
            except UnreadableSource as error:
                return Unreadable(sample.name, str(error))
            try:
                found.append(
                    self.task.outcome(sample, read.answer, read.picture)
                    if read.finite or read.answer.kind != "values"
                    else self.task.no_answer(sample)
                )
            except UnreadableLabel as error:
                return Unreadable(sample.name, str(error))
        return found

    def read(self, side: Side, source: Any) -> Read:
        """What a side answers to a source, as the task reads it. Raises LiteError."""
        try:
            feeds, picture = read_source(side.model, source)
        except (UsageError, ShapeError, CalibrationError) as error:
            raise UnreadableSource(str(error)) from None
        outputs = side.predictor.run(feeds)
        answer = answer_of(
            side.model, feeds, outputs, self.labels, picture=picture, adapter=self.adapter,
            **self.options,
        )  # fmt: skip
        floats = [x for x in outputs.values() if x.dtype.kind == "f"]
        return Read(answer, picture, not any(np.isnan(x).any() for x in floats))
