"""Text in images, end to end: a region counts where it is found and read right.

Source: ICDAR's end-to-end protocol, an IoU of 0.5 and the same transcription."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from lite_engine.errors import LiteError
from lite_messages import tr

from ..statistics import Measure, ratio
from ._base import NOT_FINITE, Outcome, Task
from ._boxes import Found, answered, pairs, pixels

if TYPE_CHECKING:
    from ...answers import Answer
    from ..dataset import Sample


class Spotting(Task):
    """A sample's label are boxes with text; `data` of an outcome is how many regions were found and
    read right, were found, are there, and were told."""

    def options(self) -> Mapping[str, Any]:
        return {"kind": "regions"}

    def truth(self, sample: Sample) -> str:
        return " ".join(b.text for b in sample.label if not b.ignored)

    def outcome(self, sample: Sample, answer: Answer, picture: tuple[int, int] | None) -> Outcome:
        if answer.kind != "boxes" or picture is None:
            raise self.refuse(answer, tr("regions of an image"))
        if any("text" not in item for item in answer.items):
            raise LiteError(
                tr("the regions are not read: the data set needs their text"),
                fix=tr("evaluate a pipeline that crops and reads them"),
            )
        texts = [str(item["text"]) for item in answer.items]
        boxes = [Found(0, pixels(box, picture), score) for _, _, box, score in answered(answer)]
        wanted = sample.label
        found = pairs(wanted, boxes)
        counted = [(texts[i], wanted[k].text) for i, k in found if k is not None and
                   not wanted[k].ignored]  # fmt: skip
        right = sum(a == b for a, b in counted)
        told = len(counted) + sum(k is None for _, k in found)
        return self._outcome(sample, " ".join(texts), (right, len(counted), told))

    def no_answer(self, sample: Sample) -> Outcome:
        return self._outcome(sample, NOT_FINITE, (0, 0, 0))

    @staticmethod
    def _outcome(sample: Sample, said: str, counts: tuple[int, int, int]) -> Outcome:
        right, found, told = counts
        there = sum(not b.ignored for b in sample.label)
        value = 2 * right / (there + told) if there + told else 1.0
        return Outcome(said, None, value, right == there == told, (right, found, there, told))

    def measures(self, samples: Sequence[Sample], outcomes: Sequence[Outcome]) -> list[Measure]:
        parts = np.array([o.data for o in outcomes], np.float64)
        total = parts.sum(axis=0)

        def share(above: int, *below: int) -> Callable[[np.ndarray], np.ndarray]:
            return lambda sums: (
                len(below) * sums[..., above] / np.maximum(sums[..., below].sum(-1), 1)
            )

        named = {"Hmean": (0, 2, 3), "precision": (0, 3), "recall": (0, 2),
                 "detection Hmean": (1, 2, 3), "exact match": (0, 1)}  # fmt: skip
        return [
            Measure(name, float(share(*of)(total)), ratio(parts, share(*of)))
            for name, of in named.items()
        ]


TASK = Spotting
