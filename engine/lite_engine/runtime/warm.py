"""A model's OpenCL kernels compiled ahead of time, for this machine's device."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

from lite_messages import tr

from ..model_file import Model
from .choice import usability
from .inputs import random_feeds
from .predictor import Predictor
from .shares import Share, sentence


@dataclass(frozen=True)
class Warmed:
    """The device whose caches hold the kernels now, how long that took, and which backend ran how
    much of the model."""

    device: str
    seconds: float
    shares: dict[str, Share]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        ran = sentence(self.shares, "opencl")
        return tr(
            "compiled for {device} in {seconds:.1f} s: {ran}",
            device=self.device,
            seconds=self.seconds,
            ran=ran,
        )


def warm(model: Model) -> Warmed:
    """Compiles every kernel and runs the model once, because some drivers compile at a kernel's
    first launch: the next process finds the kernels in the caches. Raises BackendUnavailableError
    where OpenCL cannot be used."""
    began = time.perf_counter()
    predictor = Predictor(model, "opencl")
    feeds = random_feeds(model)
    predictor.run(feeds)
    seconds = time.perf_counter() - began
    found = predictor.shares({name: x.shape for name, x in feeds.items()})
    return Warmed(usability("opencl").reason, seconds, found)
