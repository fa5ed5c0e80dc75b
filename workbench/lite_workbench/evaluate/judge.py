"""What is done with each sample: it runs on every side, and the task judges the answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lite_engine.adapter import Adapter
from lite_engine.errors import UsageError
from lite_engine.images import is_image, stored_pixels

from .reading import UnreadableSource
from .remote import local
from .tasks._base import UnreadableLabel

if TYPE_CHECKING:
    from .dataset import Sample
    from .pipeline_side import PipelineSide
    from .side import Read, Side
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

    def outcomes(
        self, sides: Sequence[Side | PipelineSide], sample: Sample
    ) -> list[Outcome] | Unreadable:
        """One outcome for each side. Raises LiteError when a side cannot run."""
        try:
            with local(sample) as here:
                return [self._outcome(side, here) for side in sides]
        except (UnreadableSource, UnreadableLabel) as error:
            return Unreadable(sample.name, str(error))

    def _outcome(self, side: Side | PipelineSide, sample: Sample) -> Outcome:
        read = self.read(side, sample.source)
        if read.finite or read.answer.kind != "values":
            return self.task.outcome(sample, read.answer, read.picture)
        return self.task.no_answer(sample)

    def read(self, side: Side | PipelineSide, source: Any) -> Read:
        """What a side answers to a source, as the task reads it. Raises LiteError."""
        return side.read(self.seen(source), self.labels, self.adapter, self.options)

    def seen(self, source: Any) -> Any:
        """The source as the task has it read: where labels count the pixels of files as they are
        stored, the pixels of one that would be turned."""
        if not self.task.AS_STORED or not isinstance(source, (str, Path)) or not is_image(source):
            return source
        try:
            pixels = stored_pixels(source)
        except UsageError:
            return source  # who reads it says why not
        return source if pixels is None else pixels
