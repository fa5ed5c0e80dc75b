"""Running models: choice of backend, predictor, execution, inputs, tuning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazily
from .choice import Decision, choose, host_target, usability
from .predictor import Predictor

if TYPE_CHECKING:
    from .execute import Execution

__all__ = ["Decision", "Execution", "Predictor", "choose", "host_target", "usability"]

__getattr__ = lazily(__name__, {"Execution": "execute"})
