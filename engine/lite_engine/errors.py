"""The error tree. Every error holds what is wrong, where, how to fix it and the command that does.

LiteError
├── ModelFormatError             damaged, truncated, hostile or not a model
├── UnsupportedOperatorError     an operator that cannot be imported or run, and what to do
├── ShapeError                   shapes, ranks or types do not fit
├── TargetMismatchError          the file needs X, this machine has Y
├── BackendUnavailableError      a backend cannot be used here, and why
├── CalibrationError             calibration data cannot be used
├── DeviceError                  a remote or emulated device failed at a named stage
├── VersionError                 the file is newer (or too old) for this engine
├── WriteError                   a file or folder cannot be written
└── UsageError                   a wrong argument, option or setting
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypedDict, TypeVar

from lite_messages import tr

from .terminal import shortened

#: Characters that one field of an error holds at most; a hostile file can name a layer in millions.
FIELD_LIMIT = 2000

_Error = TypeVar("_Error", bound="LiteError")


class ErrorData(TypedDict):
    """An error as JSON."""

    kind: str
    what: str
    where: str
    fix: str
    command: str


class LiteError(Exception):
    """Base of every error that is shown to a person as one line.

    `what` is wrong, `where` (a file, layer, option or device), `fix` says how to mend it, and
    `command` does it when pasted into a shell: quote paths and names with `shlex.quote`. Where a
    command is given, `fix` names it, so that the line alone suffices: without words of its own it
    becomes "run `COMMAND`", with words "WORDS: `COMMAND`".
    """

    #: The class's name in JSON.
    kind = "error"

    def __init__(
        self, what: object = "", *, where: object = "", fix: str = "", command: str = ""
    ) -> None:
        self.what, self.where = _line(what), _line(where)
        self.fix = _line(with_command(fix, command))
        self.command = shortened(command, FIELD_LIMIT)  # a path in it may hold line breaks, quoted
        super().__init__(self.what)

    @classmethod
    def of(cls: type[_Error], error: LiteError, *, where: object = "") -> _Error:
        """The same error as one of this class, with `where` as its outer place."""
        made = cls(error.what, where=error.where, fix=error.fix, command=error.command)
        return made.within(where)

    def within(self: _Error, where: object) -> _Error:
        """Names the place (a file, a device) that the place named so far is in, unless the error
        names it already; returns itself."""
        place = _line(where)
        if place not in str(self):
            self.where = _line(f"{place}: {self.where}" if self.where else place)
        return self

    def to_dict(self) -> ErrorData:
        return {"kind": self.kind, "what": self.what, "where": self.where,
                "fix": self.fix, "command": self.command}  # fmt: skip

    def __str__(self) -> str:
        line = f"{self.where}: {self.what}" if self.where else self.what
        return f"{line}; {self.fix}" if self.fix else line


def with_command(fix: str, command: str) -> str:
    """A fix in words that names the command, where there is one."""
    if not command or f"`{command}`" in fix:
        return fix
    return f"{fix}: `{command}`" if fix else tr("run `{command}`", command=command)


def _line(text: object) -> str:
    """Names that a file gives may hold line breaks."""
    return shortened(" ".join(str(text).splitlines()), FIELD_LIMIT)


def reason_of(error: Exception) -> str:
    """What went wrong, without the file's name and number that the system's errors begin with. Of
    an error without words its type."""
    return (isinstance(error, OSError) and error.strerror) or str(error) or type(error).__name__


class ModelFormatError(LiteError):
    """The file is damaged, truncated, hostile or not a model of this format."""

    kind = "model_format"


class UnsupportedOperatorError(LiteError):
    """Operators that cannot be imported or run; `nodes` names them."""

    kind = "unsupported_operator"

    def __init__(
        self,
        what: object = "",
        nodes: tuple[str, ...] = (),
        *,
        where: object = "",
        fix: str = "",
        command: str = "",
    ) -> None:
        super().__init__(what, where=where, fix=fix, command=command)
        self.nodes = nodes


class ShapeError(LiteError):
    """Shapes, ranks or types of values do not fit an operator or an input."""

    kind = "shape"


#: What a damaged node leads to in an operator's own functions: attributes of a wrong type or
#: length, sizes that nothing has.
MISFIT = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


def not_computed(error: Exception, where: str) -> ShapeError:
    """What an operator says whose numbers cannot be computed, or not in the memory there is."""
    if isinstance(error, MemoryError):
        return ShapeError(tr("out of memory"), where=where, fix=str(error))
    return ShapeError(error, where=where)


class TargetMismatchError(LiteError):
    """The file needs something that this machine does not have."""

    kind = "target_mismatch"


class BackendUnavailableError(LiteError):
    """A backend cannot be used here; the error says why and how to fix it."""

    kind = "backend_unavailable"


class CalibrationError(LiteError):
    """Calibration data cannot be used."""

    kind = "calibration"


class DeviceError(LiteError):
    """A device failed; `where` is its name, `stage` one of reach, copy, run, fetch."""

    kind = "device"

    def __init__(
        self,
        what: object = "",
        *,
        where: object = "",
        fix: str = "",
        command: str = "",
        stage: str = "",
    ) -> None:
        super().__init__(what, where=where, fix=fix, command=command)
        self.stage = stage


class VersionError(LiteError):
    """The file's format or engine version does not fit this engine."""

    kind = "version"


class WriteError(LiteError):
    """A file or folder cannot be written: the disk is full, or the place is read-only. Work that
    tries one thing after another ends with it, because the next would fail as well."""

    kind = "write"


class LiteWarning(UserWarning):
    """What a person should know of work that goes on: another backend runs a layer, for example."""


class UsageError(LiteError):
    """An argument, option or setting is wrong."""

    kind = "usage"


def check_choice(
    name: str,
    given: object,
    choices: Iterable[object],
    *,
    error: type[LiteError] = UsageError,
    fix: str = "",
) -> None:
    """Raises `error` unless `given` is one of the choices. `name` says what it is: a translated
    noun, or an attribute's name; choices that stand for "none given" (None, "") are not listed."""
    allowed = list(choices)
    if given not in allowed:
        listed = ", ".join(str(choice) for choice in allowed if choice)
        message = tr(
            "{name} {given!r} is not one of {choices}", name=name, given=given, choices=listed
        )
        raise error(message, fix=fix)
