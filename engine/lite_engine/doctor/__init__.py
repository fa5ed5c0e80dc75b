"""What this machine has, why a backend cannot be used, how to fix it."""

from .checks import Check, Examination, examine
from .field_report import FieldReport, adopt, examine_opencl, read
from .files import check_file, device_check

__all__ = [
    "Check",
    "Examination",
    "FieldReport",
    "adopt",
    "check_file",
    "device_check",
    "examine",
    "examine_opencl",
    "read",
]
