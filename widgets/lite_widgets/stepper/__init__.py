"""The walk."""

from .stepper import Stepper

__all__ = ["Stepper"]
