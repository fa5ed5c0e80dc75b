"""Which layers mind being quantized."""

from .sensitivity_list import SensitivityList

__all__ = ["SensitivityList"]
