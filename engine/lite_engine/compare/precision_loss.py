"""What a target's fp16 or bf16 costs in accuracy: its outputs against its own in fp32."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ..model_file.precision import computed
from ..runtime.inputs import random_feeds
from ..runtime.predictor import Predictor
from .difference import Difference, difference

if TYPE_CHECKING:
    from ..model_file import Model

#: Float precisions that are less than fp32.
LOWER = ("fp16", "bf16")


def precision_loss(
    model: Model, target: str, feeds: Mapping[str, np.ndarray] | None = None
) -> dict[str, Difference]:
    """Output name → how far `target`'s precision is from its fp32, the baseline, for random inputs
    unless `feeds` are given. Empty where the target computes in fp32 or integers.

    Runs on this machine: raises BackendUnavailableError where the target cannot, ShapeError for
    inputs whose sizes are open."""
    precision = computed(target, model.precision(target))
    if precision not in LOWER:
        return {}
    feeds = random_feeds(model) if feeds is None else feeds
    exact = Predictor(model, target, precision="fp32").run(feeds)
    lower = Predictor(model, target, precision=precision).run(feeds)
    return {name: difference(value, lower[name]) for name, value in exact.items()}
