"""Text lines: exact matches and the character error rate (rapidfuzz's edit distance)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from lite_messages import tr

from ..statistics import Measure, ratio, share
from ._base import NOT_FINITE, Outcome, Task

if TYPE_CHECKING:
    from ...answers import Answer
    from ..dataset import Sample


class Text(Task):
    """A sample's label is its text; `data` of an outcome is the edit distance."""

    def options(self) -> Mapping[str, Any]:
        return {"kind": "text"}

    def truth(self, sample: Sample) -> str:
        return str(sample.label)

    def outcome(self, sample: Sample, answer: Answer, picture: tuple[int, int] | None) -> Outcome:
        from rapidfuzz.distance import Levenshtein

        if answer.kind != "text":
            raise self.refuse(answer, tr("a line of text, and labels with the model's characters"))
        edits = Levenshtein.distance(answer.text, sample.label)
        share = min(edits / max(len(sample.label), 1), 1.0)
        return Outcome(answer.text, answer.confidence, 1 - share, not edits, edits)

    def no_answer(self, sample: Sample) -> Outcome:
        return Outcome(NOT_FINITE, None, 0.0, False, max(len(sample.label), 1))

    def measures(self, samples: Sequence[Sample], outcomes: Sequence[Outcome]) -> list[Measure]:
        parts = np.array(
            [[o.data, len(s.label)] for s, o in zip(samples, outcomes, strict=True)], np.float64
        )
        edits, letters = parts.sum(axis=0)
        return [
            share("exact match", [bool(o.right) for o in outcomes]),
            Measure(
                "CER", float(edits / max(letters, 1)),
                ratio(parts, lambda sums: sums[..., 0] / np.maximum(sums[..., 1], 1)),
                higher_is_better=False,
            ),
        ]  # fmt: skip


TASK = Text
