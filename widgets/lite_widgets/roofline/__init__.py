"""How close each layer is to what the device can do."""

from .roofline import Roofline

__all__ = ["Roofline"]
