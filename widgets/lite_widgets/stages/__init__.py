"""A longer job on a device."""

from .stages import Stages

__all__ = ["Stages"]
