"""Whether a backend can be used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from ..errors import LiteError, with_command

_Error = TypeVar("_Error", bound=LiteError)


@dataclass(frozen=True)
class Usability:
    """Whether a backend can be used on this machine, why, how to fix it when not, and the command
    that does (`fix` names it)."""

    usable: bool
    reason: str
    fix: str = ""
    command: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "fix", with_command(self.fix, self.command))

    @classmethod
    def refused(cls, error: LiteError) -> Usability:
        reason = f"{error.where}: {error.what}" if error.where else error.what
        return cls(False, reason, error.fix, error.command)

    def error(self, kind: type[_Error]) -> _Error:
        """Why it cannot be used as an error."""
        return kind(self.reason, fix=self.fix, command=self.command)

    def __str__(self) -> str:
        return f"{self.reason}; {self.fix}" if self.fix else self.reason
