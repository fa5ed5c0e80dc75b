"""The question of a step and its buttons."""

from .step_header import StepHeader

__all__ = ["StepHeader"]
