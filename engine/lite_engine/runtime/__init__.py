"""Running models: choice of backend, predictor, profile, taps, compare."""

from .choice import Decision, choose, host_target, usability
from .execute import Execution
from .predictor import Predictor

__all__ = ["Decision", "Execution", "Predictor", "choose", "host_target", "usability"]
