"""What this machine has, why a backend cannot be used, how to fix it."""

from .checks import Check, Examination, examine

__all__ = ["Check", "Examination", "examine"]
