"""What this machine has, why a backend cannot be used, how to fix it."""

from .checks import Check, Examination, examine
from .files import check_file, device_check

__all__ = ["Check", "Examination", "check_file", "device_check", "examine"]
