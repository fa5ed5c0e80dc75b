"""Side: what is evaluated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from lite_engine.adapter import Adapter
from lite_engine.errors import CalibrationError, ShapeError, UsageError
from lite_engine.ir.bfloat16 import widened

from ..answers import Answer, answer_of
from ..inputs import is_guessed, read_source
from .reading import UnreadableSource

if TYPE_CHECKING:
    from lite_engine.model_file import Model
    from lite_engine.runtime import Predictor


class Read(NamedTuple):
    """An answer, the image's (width, height), and whether no output holds NaN."""

    answer: Answer
    picture: tuple[int, int] | None
    finite: bool


@dataclass
class Side:
    """A version of the model on a backend: what is evaluated, and what others are compared with.
    `device` is the name or address by which a worker elsewhere finds the predictor's device."""

    name: str
    predictor: Predictor
    version: str = "float"
    device: str = "local"

    @property
    def model(self) -> Model:
        return self.predictor.model

    @property
    def title(self) -> str:
        return self.model.name

    @property
    def backend(self) -> str:
        return self.predictor.backend

    @property
    def precision(self) -> str:
        return self.predictor.display_precision

    @property
    def guessed(self) -> bool:
        """Was it guessed how images become the input?"""
        return is_guessed(self.model)

    def read(
        self, source: Any, labels: Sequence[str], adapter: Adapter | None,
        options: Mapping[str, Any],
    ) -> Read:  # fmt: skip
        """What it answers to a source; `options` hold where the adapter leaves them open. Raises
        LiteError, UnreadableSource."""
        try:
            feeds, picture = read_source(self.model, source)
        except (UsageError, ShapeError, CalibrationError) as error:
            raise UnreadableSource(str(error)) from None
        outputs = widened(self.predictor.run(feeds), lambda: self.model.graph)
        answer = answer_of(
            self.model, feeds, outputs, labels, picture=picture, adapter=adapter, **options
        )
        floats = [x for x in outputs.values() if x.dtype.kind == "f"]
        return Read(answer, picture, not any(np.isnan(x).any() for x in floats))
