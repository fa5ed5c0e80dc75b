"""Running models: choice of backend, predictor, execution, inputs, tuning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from .choice import Decision, choose, host_target, usability
    from .execute import Execution
    from .predictor import Predictor

__all__ = ["Decision", "Execution", "Predictor", "choose", "host_target", "usability"]

__getattr__ = lazily(
    __name__,
    {
        **dict.fromkeys(("Decision", "choose", "host_target", "usability"), "choice"),
        "Execution": "execute",
        "Predictor": "predictor",
    },
)
