"""The error tree. Each message is one line: what, where, how to fix.

LiteError
├── ModelFormatError             damaged, truncated, hostile or not a model
├── UnsupportedOperatorError     an operator that cannot be imported or run, and what to do
├── ShapeError                   shapes, ranks or types do not fit
├── TargetMismatchError          the file needs X, this machine has Y
├── BackendUnavailableError      a backend cannot be used here, and why
├── CalibrationError             calibration data cannot be used
├── DeviceError                  a remote or emulated device failed at a named stage
├── VersionError                 the file is newer (or too old) for this engine
└── UsageError                   a wrong argument, option or setting
"""

from __future__ import annotations


class LiteError(Exception):
    """Base of every error that is shown to a person as one line."""


def reason_of(error: Exception) -> str:
    """What went wrong, without the file's name and number that the system's errors begin with."""
    return (isinstance(error, OSError) and error.strerror) or str(error)


class ModelFormatError(LiteError):
    """The file is damaged, truncated, hostile or not a model of this format."""


class UnsupportedOperatorError(LiteError):
    """Operators that cannot be imported or run; `nodes` names them."""

    def __init__(self, message: str, nodes: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.nodes = nodes


class ShapeError(LiteError):
    """Shapes, ranks or types of values do not fit an operator or an input."""


class TargetMismatchError(LiteError):
    """The file needs something that this machine does not have."""


class BackendUnavailableError(LiteError):
    """A backend cannot be used here; the message says why and how to fix it."""


class CalibrationError(LiteError):
    """Calibration data cannot be used."""


class DeviceError(LiteError):
    """A device failed; `stage` is one of reach, copy, run, fetch."""

    def __init__(self, message: str, stage: str = "") -> None:
        super().__init__(message)
        self.stage = stage


class VersionError(LiteError):
    """The file's format or engine version does not fit this engine."""


class UsageError(LiteError):
    """An argument, option or setting is wrong."""
