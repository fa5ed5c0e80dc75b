"""Side: what is evaluated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lite_engine.model_file import Model
    from lite_engine.runtime import Predictor


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
