"""What is done with each sample: it runs on every side, and the task judges the answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lite_engine.adapter import Adapter
from lite_engine.errors import CalibrationError, ShapeError, UsageError

from ..answers import answer_of
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
                feeds, picture = read_source(side.model, sample.source)
            except (UsageError, ShapeError, CalibrationError) as error:
                return Unreadable(sample.name, str(error))
            outputs = side.predictor.run(feeds)
            answer = answer_of(
                side.model, feeds, outputs, self.labels, picture=picture, adapter=self.adapter,
                **self.options,
            )  # fmt: skip
            try:
                found.append(self.task.outcome(sample, answer, picture))
            except UnreadableLabel as error:
                return Unreadable(sample.name, str(error))
        return found
