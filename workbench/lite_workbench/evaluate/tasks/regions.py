"""Text detection: Hmean (F1), precision and recall of boxes at an IoU of 0.5."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from lite_messages import tr, trn

from ..statistics import Measure, ratio
from ._base import NOT_FINITE, Outcome, Task
from ._boxes import Found, answered, matched, pixels

if TYPE_CHECKING:
    from ...answers import Answer
    from ..dataset import Sample


class Regions(Task):
    """A sample's label are boxes; `data` of an outcome is `Matched` and the boxes."""

    def options(self) -> Mapping[str, Any]:
        return {"kind": "regions"}

    def truth(self, sample: Sample) -> str:
        return trn("{n} region", "{n} regions", sum(not b.ignored for b in sample.label))

    def outcome(self, sample: Sample, answer: Answer, picture: tuple[int, int] | None) -> Outcome:
        if answer.kind != "boxes" or picture is None:
            raise self.refuse(answer, tr("regions of an image"))
        boxes = [Found(0, pixels(box, picture), score) for _, _, box, score in answered(answer)]
        made = matched(sample.label, boxes)
        return Outcome(
            trn("{n} region", "{n} regions", len(boxes)), None, made.f1, None, (made, boxes)
        )

    def no_answer(self, sample: Sample) -> Outcome:
        made = matched(sample.label, [])
        return Outcome(NOT_FINITE, None, made.f1, None, (made, []))

    def measures(self, samples: Sequence[Sample], outcomes: Sequence[Outcome]) -> list[Measure]:
        parts = np.array([o.data[0] for o in outcomes], np.float64)

        def share(*of: int) -> Callable[[np.ndarray], np.ndarray]:
            """Found objects as a share of these sums."""
            return lambda sums: len(of) * sums[..., 0] / np.maximum(sums[..., of].sum(-1), 1)

        total = parts.sum(axis=0)
        named = {"Hmean": (1, 2), "precision": (2,), "recall": (1,)}
        return [
            Measure(name, float(share(*of)(total)), ratio(parts, share(*of)))
            for name, of in named.items()
        ]

    def export(
        self, samples: Sequence[Sample], outcomes: Sequence[Outcome]
    ) -> list[dict[str, Any]]:
        return [
            {"sample": s.name, "boxes": [[*b.xywh, b.score] for b in o.data[1]]}
            for s, o in zip(samples, outcomes, strict=True)
        ]


TASK = Regions
