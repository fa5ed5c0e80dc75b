"""What the two sides of a comparison answer, where one holds integers and the other floats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from lite_engine.compare import Side
from lite_engine.errors import LiteError

from .answer_difference import mark_different
from .answers import Answer, answer_of

if TYPE_CHECKING:
    from lite_engine.compare.answer import Read
    from lite_engine.compare.finding import AnswerDifference
    from lite_engine.compare.side import Valued

Arrays = Mapping[str, np.ndarray]


def reader(
    sides: tuple[Valued, Valued], feeds: Arrays, picture: tuple[int, int] | None = None
) -> Read:
    """Reads the outputs with each side's labels and adapter. `picture` is the (width, height) of
    the image that `feeds` were made of."""

    def read(made: AnswerDifference, a: Arrays, b: Arrays) -> AnswerDifference:
        said: list[Answer] = []
        try:
            for side, outputs in zip(sides, (a, b), strict=True):
                if isinstance(side, Side):
                    said.append(answer_of(side.predictor.model, feeds, outputs, picture=picture))
        except LiteError as error:  # an adapter's function: the layers are compared all the same
            return replace(made, detail=str(error).rstrip("."))
        one, other = said
        found = mark_different(one, other)
        return replace(
            made, same=_same(one, other), baseline=one.text, candidate=other.text, detail=found
        )

    return read


def _same(a: Answer, b: Answer) -> bool | None:
    """After `mark_different`. None where numbers have no reading, and for masks that differ: how
    many pixels do is said instead."""
    if a.kind != b.kind:
        return None
    if a.kind == "values":
        equal = a.mask is not None and b.mask is not None and np.array_equal(a.mask, b.mask)
        return True if equal else None
    if a.kind == "boxes":
        return not any(item.get("bad") for item in (*a.items, *b.items))
    return a.text == b.text
